"""STIX identifiers, timestamps, common properties and TLP 2.0 marking definitions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from tocsin.model import Tlp

StixObject = dict[str, Any]
OBSERVABLES = UUID("00abedb4-aa42-466c-9c01-fed23315a9b7")
"""The standard namespace of observables' identifiers; section 2.9."""
_EXTENSION = "extension-definition--60a3c5c5-0d10-413e-aab3-9e08dde9e88d"
_IDS = {
    Tlp.CLEAR: "94868c89-83c2-464b-929b-a1a8aa3c8487",
    Tlp.GREEN: "bab4a63c-aed9-4cf5-a766-dfca5abac2bb",
    Tlp.AMBER: "55d920b0-5e8b-4f79-9ee9-91f868d9b421",
    Tlp.AMBER_STRICT: "939a9414-2ddd-4d32-a0cd-375ea402b003",
    Tlp.RED: "e828b379-4e03-4974-9ac4-e53a884c97c1",
}


def observable_id(type_: str, contributing: Mapping[str, Any]) -> str:
    """Return the deterministic ID of an observable; section 2.9.

    It is made of the contributing properties as canonical JSON (RFC 8785). All keys are ASCII and
    there are no numbers, so plain sorted JSON is canonical.
    """
    text = json.dumps(contributing, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"{type_}--{uuid5(OBSERVABLES, text)}"


class StixIdentifiers:
    """Deterministic identifiers of objects that only this installation knows."""

    def __init__(self, public_url: str) -> None:
        self._namespace = uuid5(NAMESPACE_URL, public_url or "urn:tocsin")

    def of(self, type_: str, *parts: str) -> str:
        """Return the ID of an object that these parts identify within its type."""
        return f"{type_}--{uuid5(self._namespace, json.dumps([type_, *parts]))}"


def timestamp(moment: datetime) -> str:
    """Return a moment in UTC, to the millisecond; section 3.2."""
    text = moment.astimezone(UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def domain_object(type_: str, name: str, created: datetime, modified: datetime) -> StixObject:
    """Return the common properties of domain objects and relationships."""
    return {
        "type": type_,
        "spec_version": "2.1",
        "id": name,
        "created": timestamp(created),
        "modified": timestamp(max(created, modified)),
    }


def marking_id(tlp: Tlp) -> str:
    """Return the ID of a marking definition."""
    return f"marking-definition--{_IDS[tlp]}"


def marking_definition(tlp: Tlp) -> StixObject:
    """Return a marking definition."""
    return {
        "type": "marking-definition",
        "spec_version": "2.1",
        "id": marking_id(tlp),
        "created": "2022-10-01T00:00:00.000Z",
        "name": f"TLP:{tlp.value.upper()}",
        "extensions": {_EXTENSION: {"extension_type": "property-extension", "tlp_2_0": tlp.value}},
    }
