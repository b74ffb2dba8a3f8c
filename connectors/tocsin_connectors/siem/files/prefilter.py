"""Prefilter for lines whose record may name an entity, whatever the JSON spelling."""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import IPv6Address, ip_address

from tocsin import Entity, EntityKind

_UNESCAPED_RUN = re.compile(rb"[ !#$%()*,\-.0-9:;=?@A-Z\[\]^_a-z{|}~]+")
"""Characters that no JSON writer escapes; some escape `/`, `<` or `+`."""
_EQUIVALENT_KINDS = {EntityKind.HOST: EntityKind.DOMAIN, EntityKind.MAILBOX: EntityKind.EMAIL}
"""Kinds that records do not distinguish."""


def build_needles(entity: Entity) -> tuple[bytes, ...]:
    """Return lowercase texts, one of which is in any lowercased line that names the entity."""
    spellings = tuple(_spell_address(entity)) or (entity.value,)
    separators = rb"[-_]" if entity.kind is EntityKind.CVE else rb"(?!)"
    return tuple(_find_longest(spelling.encode().lower(), separators) for spelling in spellings)


def is_same_entity(entity: Entity, found: Entity) -> bool:
    """Return whether a found entity is the queried one, ignoring case."""
    kinds = {_EQUIVALENT_KINDS.get(kind, kind) for kind in (entity.kind, found.kind)}
    return len(kinds) == 1 and entity.value.casefold() == found.value.casefold()


def _spell_address(entity: Entity) -> Iterator[str]:
    """Yield the spellings of an address, with and without zeros."""
    try:
        address = ip_address(entity.value)
    except ValueError:
        return
    yield str(address)
    if isinstance(address, IPv6Address):
        yield address.exploded
        yield ":".join(f"{int(group, 16):x}" for group in address.exploded.split(":"))


def _find_longest(spelling: bytes, separators: bytes) -> bytes:
    """Return the longest part of a text that JSON writers never escape, perhaps empty."""
    parts = (part for run in _UNESCAPED_RUN.findall(spelling) for part in re.split(separators, run))
    return max(parts, key=len, default=b"")
