"""Helper that searches for an entity in one field of a document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any

from tocsin import Entity, EntityKind

# As logs may write it, and as somebody may ask for it
VALUES: Mapping[EntityKind, tuple[str, str]] = {
    EntityKind.IP: ("203.0.113.9", "203.0.113.9"),
    EntityKind.HOST: ("WEB-9", "web-9"),
    EntityKind.USER: ("Administrator", "administrator"),
    EntityKind.DOMAIN: ("Evil.example.com", "evil.example.com"),
    EntityKind.URL: ("https://evil.example.com/A", "https://evil.example.com/a"),
    EntityKind.FILE_HASH: ("E3B0C44298FC1C149AFBF4C8996FB924", "e3b0c44298fc1c149afbf4c8996fb924"),
    EntityKind.FILE: ("C:\\Temp\\Evil.exe", "c:\\temp\\evil.exe"),
    EntityKind.PROCESS: ("C:\\Temp\\Evil.exe", "c:\\temp\\evil.exe"),
    EntityKind.EMAIL: ("Ann@example.com", "ann@example.com"),
    EntityKind.CVE: ("CVE-2026-12345", "cve-2026-12345"),
    EntityKind.CLOUD_RESOURCE: ("i-0ABC", "i-0abc"),
}


def everywhere(
    fields: Mapping[EntityKind, Sequence[str]], document: Mapping[str, Any]
) -> Iterator[tuple[str, Entity, dict[str, Any]]]:
    """Yield each field, what is asked for, and the document with that in the field."""
    for kind, places in fields.items():
        written, asked = VALUES[kind]
        for place in places:
            yield place, Entity(kind, asked), _with(document, place, written)


def _with(document: Mapping[str, Any], place: str, value: str) -> dict[str, Any]:
    holder = found = deepcopy(dict(document))
    *way, last = place.split(".")
    for name in way:
        holder = holder.setdefault(name, {})
    holder[last] = value
    return found
