"""Mappings of severities, times and entities that Sentinel and Defender XDR share."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from tocsin import Entity, EntityKind, Severity
from tocsin_connectors.siem.records import parse_entities, parse_utc, text

# https://learn.microsoft.com/rest/api/securityinsights/incidents/get#incidentseverity and
# https://learn.microsoft.com/graph/api/resources/security-incident
_SEVERITIES: Mapping[str, Severity] = {
    "informational": Severity.INFORMATIONAL,
    "low": Severity.LOW,
    "medium": Severity.MEDIUM,
    "high": Severity.HIGH,
}
_NEVER = "0001-"
"""Prefix of .NET's minimum time, which means that a time was never set."""


def parse_severity(word: str | None) -> Severity | None:
    """Return the severity of a word, or None for other words such as `unknown`."""
    return _SEVERITIES.get((word or "").casefold())


def parse_time(record: dict[str, Any], member: str) -> datetime | None:
    """Return the time at a member, or None if it was never set.

    Raises ValueError if it is not a time.
    """
    moment = text(record, member)
    return parse_utc(moment) if moment and not moment.startswith(_NEVER) else None


_ENTITY_FORMS = {
    EntityKind.DOMAIN: re.compile(r"[^/:@]+"),
    EntityKind.URL: re.compile(r"[^\s/]+/\S*"),  # URLs without a scheme
    EntityKind.USER: re.compile(r"(?!-\\-$).+"),  # Windows writes - for no account
}
"""Patterns of values, since columns and members may hold several kinds."""
_LOCATION = re.compile(r"([^\s/:@]+\.[^\s/:@]+)(?::\d{1,5})?")


def parse_entity(kind: EntityKind, value: str) -> Iterator[Entity]:
    """Yield the entity of a kind in a value.

    An address may be used as a machine's name, and either of them as a URL.
    """
    form = _ENTITY_FORMS.get(kind)
    if form is None or form.fullmatch(value):
        yield from (
            entity for entity in parse_entities(kind, value) if entity.value
        )  # `.` normalizes to an empty value
    elif kind is EntityKind.URL:
        yield from _parse_location(value)


def _parse_location(value: str) -> Iterator[Entity]:
    """Yield the address or the domain in a value, with or without a port."""
    if found := list(parse_entities(EntityKind.IP, value)):
        yield from found
    elif place := _LOCATION.fullmatch(value):
        yield from parse_entity(EntityKind.DOMAIN, place[1])


def parse_user(
    name: str | None, domain: str | None = None, upn: str | None = None
) -> Iterator[Entity]:
    r"""Yield an account in the form of the log: `ann@example.com`, `EXAMPLE\ann`, or `ann`."""
    is_whole = {"@", "\\"} & set(name or "")
    if upn and "@" in upn:
        yield from parse_entity(EntityKind.USER, upn)
    if name and domain and not is_whole:
        yield from parse_entity(EntityKind.USER, f"{domain}\\{name}")
    elif name and (is_whole or "@" not in (upn or "")):
        yield from parse_entity(EntityKind.USER, name)


def parse_machine(name: str | None, domain: str | None = None) -> Iterator[Entity]:
    """Yield a machine by its fully qualified name, as far as it is known."""
    if name:
        whole = f"{name}.{domain}" if domain and "." not in name else name
        yield from parse_entity(EntityKind.HOST, whole)


def parse_file(folder: str | None, name: str | None) -> Iterator[Entity]:
    """Yield a file by its path, as far as it is known. `folder` may include the name."""
    if not name:
        return
    if not folder or folder.casefold() == name.casefold():
        yield Entity(EntityKind.FILE, name)
    elif folder.casefold().endswith(("\\" + name.casefold(), "/" + name.casefold())):
        yield Entity(EntityKind.FILE, folder)
    else:
        separator = "/" if "/" in folder and "\\" not in folder else "\\"
        yield Entity(EntityKind.FILE, folder.rstrip("\\/") + separator + name)
