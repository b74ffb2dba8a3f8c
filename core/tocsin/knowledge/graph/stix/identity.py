"""How objects are called, and how moments are written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

StixObject = dict[str, Any]
OBSERVABLES = UUID("00abedb4-aa42-466c-9c01-fed23315a9b7")
"""The namespace of observables' identifiers, alike for everybody; section 2.9."""


def observable_id(type_: str, contributing: Mapping[str, Any]) -> str:
    """Return the id of an observable: the same for everybody who saw the same; section 2.9.

    It is made of its contributing properties as canonical JSON (RFC 8785). All keys here are
    ASCII, and there are no numbers, so that plain sorted JSON is canonical.
    """
    text = json.dumps(contributing, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"{type_}--{uuid5(OBSERVABLES, text)}"


class StixIdentifiers:
    """Identifiers of what only this Tocsin knows; the same whenever it is asked."""

    def __init__(self, public_url: str) -> None:
        self._namespace = uuid5(NAMESPACE_URL, public_url or "urn:tocsin")

    def of(self, type_: str, *parts: str) -> str:
        """Return the id of an object that these parts tell from all others of its type."""
        return f"{type_}--{uuid5(self._namespace, json.dumps([type_, *parts]))}"


def timestamp(moment: datetime) -> str:
    """Return a moment in UTC, to the millisecond; section 3.2."""
    text = moment.astimezone(UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def domain_object(type_: str, name: str, created: datetime, modified: datetime) -> StixObject:
    """Return what all domain objects and relationships begin with."""
    return {
        "type": type_,
        "spec_version": "2.1",
        "id": name,
        "created": timestamp(created),
        "modified": timestamp(max(created, modified)),
    }
