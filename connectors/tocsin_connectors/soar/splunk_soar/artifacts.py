"""What an entity is as an artifact of Splunk SOAR."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from types import MappingProxyType
from typing import Any

from tocsin import EntityKind, Observable

ID_PREFIX = "tocsin-"
"""What the identifiers of Tocsin's artifacts begin with."""
ENTITY_LABEL = "entity"
"""The label of the artifacts that are entities."""
CEF_FIELDS: Mapping[EntityKind, str] = MappingProxyType(
    {
        EntityKind.IP: "sourceAddress",
        EntityKind.DOMAIN: "destinationDnsDomain",
        EntityKind.URL: "requestURL",
        EntityKind.FILE_HASH: "fileHash",
        EntityKind.EMAIL: "fromEmail",
        EntityKind.USER: "sourceUserName",
        EntityKind.HOST: "sourceHostName",
        EntityKind.PROCESS: "sourceProcessName",
        EntityKind.FILE: "fileName",
        EntityKind.MAILBOX: "toEmail",
    }
)
"""The fields of the Common Event Format; the templates name the same."""
_FIELD = "tocsinEntity"


def build_artifact(observable: Observable) -> dict[str, Any]:
    """Return the artifact, whose identifier is the same whenever the observable comes.

    `cef_types` says what a field contains, by which Splunk SOAR knows what can be done with it.
    """
    field = CEF_FIELDS.get(observable.kind, _FIELD)
    return {
        "name": f"Entity: {observable.kind.value}",
        "label": ENTITY_LABEL,
        "source_data_identifier": _build_identifier(observable),
        "cef": {field: observable.value},
        "cef_types": {field: [observable.called] if observable.called else []},
    }


def _build_identifier(observable: Observable) -> str:
    name = f"{observable.kind.value}\0{observable.value}".encode(errors="replace")
    return ID_PREFIX + sha256(name).hexdigest()[:32]
