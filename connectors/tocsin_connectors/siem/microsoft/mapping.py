"""Mappings of severities, times and entities that Sentinel and Defender XDR share."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from tocsin import Entity, EntityKind, Severity
from tocsin_connectors.siem.entities import parse_entities
from tocsin_connectors.siem.records import parse_utc, text

# https://learn.microsoft.com/rest/api/securityinsights/incidents/get#incidentseverity and
# https://learn.microsoft.com/graph/api/resources/security-incident
_SEVERITIES: Mapping[str, Severity] = {
    "informational": Severity.INFORMATIONAL,
    "low": Severity.LOW,
    "medium": Severity.MEDIUM,
    "high": Severity.HIGH,
}
_NEVER = "0001-"
"""How .NET writes a time that was never set."""


def parse_severity(word: str | None) -> Severity | None:
    """Return the severity that a word means, None for any other, such as `unknown`."""
    return _SEVERITIES.get((word or "").casefold())


def parse_time(record: dict[str, Any], member: str) -> datetime | None:
    """Return the time at a member, None where it was never set; ValueError where it is no time."""
    moment = text(record, member)
    return parse_utc(moment) if moment and not moment.startswith(_NEVER) else None


_ENTITY_FORMS = {
    EntityKind.DOMAIN: re.compile(r"[^/:@]+"),
    EntityKind.URL: re.compile(r"[^\s/]+/\S*"),  # some write it without its scheme
    EntityKind.USER: re.compile(r"(?!-\\-$).+"),  # Windows writes - for nobody
}
"""What a value has to look like, since columns and members may hold one kind or another."""
_LOCATION = re.compile(r"([^\s/:@]+\.[^\s/:@]+)(?::\d{1,5})?")


def parse_entity(kind: EntityKind, value: str) -> Iterator[Entity]:
    """Yield the entity of a kind that a value names.

    An address may stand for a machine's name, and either of them for a URL.
    """
    form = _ENTITY_FORMS.get(kind)
    if form is None or form.fullmatch(value):
        yield from (
            entity for entity in parse_entities(kind, value) if entity.value
        )  # of `.` nothing is left
    elif kind is EntityKind.URL:
        yield from _parse_location(value)


def _parse_location(value: str) -> Iterator[Entity]:
    """Yield the address or the domain that a value is, with a port or without."""
    if found := list(parse_entities(EntityKind.IP, value)):
        yield from found
    elif place := _LOCATION.fullmatch(value):
        yield from parse_entity(EntityKind.DOMAIN, place[1])


def parse_user(
    name: str | None, domain: str | None = None, upn: str | None = None
) -> Iterator[Entity]:
    r"""Yield an account as each log calls it: `alice@example.com`, `EXAMPLE\alice`, or `alice`."""
    is_whole = {"@", "\\"} & set(name or "")
    if upn and "@" in upn:
        yield from parse_entity(EntityKind.USER, upn)
    if name and domain and not is_whole:
        yield from parse_entity(EntityKind.USER, f"{domain}\\{name}")
    elif name and (is_whole or "@" not in (upn or "")):
        yield from parse_entity(EntityKind.USER, name)


def parse_machine(name: str | None, domain: str | None = None) -> Iterator[Entity]:
    """Yield a machine by its whole name, as far as it is told."""
    if name:
        whole = f"{name}.{domain}" if domain and "." not in name else name
        yield from parse_entity(EntityKind.HOST, whole)


def parse_file(folder: str | None, name: str | None) -> Iterator[Entity]:
    """Yield a file by its path, as far as it is told; `folder` may hold its name already."""
    if not name:
        return
    if not folder or folder.casefold() == name.casefold():
        yield Entity(EntityKind.FILE, name)
    elif folder.casefold().endswith(("\\" + name.casefold(), "/" + name.casefold())):
        yield Entity(EntityKind.FILE, folder)
    else:
        separator = "/" if "/" in folder and "\\" not in folder else "\\"
        yield Entity(EntityKind.FILE, folder.rstrip("\\/") + separator + name)
