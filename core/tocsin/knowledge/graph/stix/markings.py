"""The marking definitions of TLP 2.0 for STIX 2.1, as OASIS publishes them.

https://github.com/oasis-open/cti-stix-common-objects, extension-definition "TLP 2.0".
"""

from __future__ import annotations

from tocsin.knowledge.graph.stix.identity import StixObject
from tocsin.model import Tlp

_EXTENSION = "extension-definition--60a3c5c5-0d10-413e-aab3-9e08dde9e88d"
_IDS = {
    Tlp.CLEAR: "94868c89-83c2-464b-929b-a1a8aa3c8487",
    Tlp.GREEN: "bab4a63c-aed9-4cf5-a766-dfca5abac2bb",
    Tlp.AMBER: "55d920b0-5e8b-4f79-9ee9-91f868d9b421",
    Tlp.AMBER_STRICT: "939a9414-2ddd-4d32-a0cd-375ea402b003",
    Tlp.RED: "e828b379-4e03-4974-9ac4-e53a884c97c1",
}


def marking_id(tlp: Tlp) -> str:
    """Return the id of a marking's definition."""
    return f"marking-definition--{_IDS[tlp]}"


def marking_definition(tlp: Tlp) -> StixObject:
    """Return the definition of a marking."""
    return {
        "type": "marking-definition",
        "spec_version": "2.1",
        "id": marking_id(tlp),
        "created": "2022-10-01T00:00:00.000Z",
        "name": f"TLP:{tlp.value.upper()}",
        "extensions": {_EXTENSION: {"extension_type": "property-extension", "tlp_2_0": tlp.value}},
    }
