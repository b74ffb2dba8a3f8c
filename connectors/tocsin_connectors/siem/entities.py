"""Entities, relations and ATT&CK techniques that records name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime

from tocsin import Entity, EntityKind, Relation, RelationType
from tocsin_connectors.siem.records import parse_host

_PLACEHOLDERS = frozenset(
    {"-", "?", "unknown", "n/a", "na", "nil", "none", "null", "(null)", "undefined", "unassigned"}
)
"""What SIEMs write where they have no value."""
_FORMS = {
    EntityKind.CVE: re.compile(r"CVE[-_]\d{4}[-_]\d{4,}", re.IGNORECASE),
    EntityKind.EMAIL: re.compile(r"[^\s<>\",;:@]{1,64}@[\w.-]{1,255}"),
    EntityKind.MAILBOX: re.compile(r"[^\s<>\",;:@]{1,64}@[\w.-]{1,255}"),
    EntityKind.FILE_HASH: re.compile(r"(?<![0-9a-z])[0-9a-f]{32,128}(?![0-9a-z])", re.IGNORECASE),
}
"""Of what has a form, all that has it is meant: `MD5=...,SHA256=...` is two hashes."""
_HOST_KINDS = frozenset({EntityKind.IP, EntityKind.HOST, EntityKind.DOMAIN})


def parse_entities(kind: EntityKind, value: str) -> Iterator[Entity]:
    """Yield what a value names; a host or a domain may turn out to be an address.

    What cannot be of the kind names nothing, and neither does `unknown` or `-`.
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
    """Return whether an entity is among others, in capitals or not: searches know no case."""
    value = entity.value.casefold()
    return any(it.kind is entity.kind and it.value.casefold() == value for it in entities)


def relate(
    sources: Iterable[Entity], kind: RelationType, targets: Iterable[Entity], at: datetime
) -> Iterator[Relation]:
    """Yield that each of the sources has to do with each of the targets."""
    others = tuple(targets)
    for source in sources:
        for target in others:
            if source != target:
                yield Relation(source=source, type=kind, target=target, at=at)


_TECHNIQUE_ID = re.compile(r"T\d{4}(?:\.\d{3})?")


def filter_techniques(values: Iterable[str]) -> Iterator[str]:
    """Yield those of some texts that are the id of a technique, and nothing else."""
    yield from (value for value in values if _TECHNIQUE_ID.fullmatch(value))


def find_techniques_in_text(text: str) -> list[str]:
    """Return the ids of techniques that a text holds."""
    return _TECHNIQUE_ID.findall(text)
