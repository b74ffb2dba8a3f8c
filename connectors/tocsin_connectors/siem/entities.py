"""Entities, relations and ATT&CK techniques that records name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import lru_cache
from ipaddress import ip_address

from tocsin import Entity, EntityKind, Relation, RelationType

_PLACEHOLDERS = frozenset(
    {"-", "?", "unknown", "n/a", "na", "nil", "none", "null", "(null)", "undefined", "unassigned"}
)
"""Placeholders that SIEMs write for missing values."""
_FORMS = {
    EntityKind.CVE: re.compile(r"CVE[-_]\d{4}[-_]\d{4,}", re.IGNORECASE),
    EntityKind.EMAIL: re.compile(r"[^\s<>\",;:@]{1,64}@[\w.-]{1,255}"),
    EntityKind.MAILBOX: re.compile(r"[^\s<>\",;:@]{1,64}@[\w.-]{1,255}"),
    EntityKind.FILE_HASH: re.compile(r"(?<![0-9a-z])[0-9a-f]{32,128}(?![0-9a-z])", re.IGNORECASE),
}
"""Patterns of values. All matches count: `MD5=...,SHA256=...` is two hashes."""
_HOST_KINDS = frozenset({EntityKind.IP, EntityKind.HOST, EntityKind.DOMAIN})


@lru_cache(maxsize=65_536)
def normalize_address(value: str) -> str | None:
    """Return an IP address in canonical form, or None if the value is not an address."""
    try:
        return str(ip_address(value))
    except ValueError:
        return None


def parse_host(value: str, kind: EntityKind) -> Iterator[Entity]:
    """Yield the entity that a host name stands for: an address, or else a `kind`.

    An empty name yields nothing.
    """
    name = value.removeprefix("[").removesuffix("]")
    if found := normalize_address(name):
        yield Entity(EntityKind.IP, found)
    elif name and kind is not EntityKind.IP and not any(character.isspace() for character in name):
        yield Entity(kind, name)


def parse_entities(kind: EntityKind, value: str) -> Iterator[Entity]:
    """Yield the entities in a value. A host or a domain may turn out to be an address.

    Values that do not fit the kind, and placeholders such as `unknown` or `-`, yield nothing.
    """
    value = value.strip()
    if value.casefold() in _PLACEHOLDERS:
        return
    if kind in _HOST_KINDS:
        yield from parse_host(value, kind)
    elif form := _FORMS.get(kind):
        yield from (Entity(kind, match[0]) for match in form.finditer(value))
    elif value:
        yield Entity(kind, value)


def contains_entity(entity: Entity, entities: Iterable[Entity]) -> bool:
    """Return whether entities contain an entity, ignoring case, as searches do."""
    value = entity.value.casefold()
    return any(other.kind is entity.kind and other.value.casefold() == value for other in entities)


def relate(
    sources: Iterable[Entity], kind: RelationType, targets: Iterable[Entity], at: datetime
) -> Iterator[Relation]:
    """Yield a relation from each source to each target."""
    others = tuple(targets)
    for source in sources:
        for target in others:
            if source != target:
                yield Relation(source=source, type=kind, target=target, at=at)


_TECHNIQUE_ID = re.compile(r"T\d{4}(?:\.\d{3})?")


def filter_techniques(values: Iterable[str]) -> Iterator[str]:
    """Yield the texts that are exactly a technique ID."""
    yield from (value for value in values if _TECHNIQUE_ID.fullmatch(value))


def find_techniques_in_text(text: str) -> list[str]:
    """Return the technique IDs in a text."""
    return _TECHNIQUE_ID.findall(text)
