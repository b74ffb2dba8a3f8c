"""Artifacts of Splunk SOAR for entities."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from types import MappingProxyType
from typing import Any

from tocsin import EntityKind, Observable

ID_PREFIX = "tocsin-"
"""Prefix of the identifiers of Tocsin's artifacts."""
ENTITY_LABEL = "entity"
"""Label of artifacts for entities."""
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
"""Fields of the Common Event Format, which the templates also use."""
_FIELD = "tocsinEntity"


def build_artifact(observable: Observable) -> dict[str, Any]:
    """Return an artifact whose identifier is derived from the observable.

    `cef_types` declares the content of a field, which determines the available actions.
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
