"""From a value under a name that says of what kind it is to the entity that it names."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tocsin import Entity, EntityKind
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
