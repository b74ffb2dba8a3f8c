"""What the events of an instance tell of an entity.

https://cloud.google.com/chronicle/docs/investigation/udm-search
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Iterator
from contextlib import suppress
from datetime import datetime
from typing import Any

from tocsin import Entity, EntityKind, Relation, RelationType, SiemEvent, TryLater, Window
from tocsin_connectors.siem.matching import is_named
from tocsin_connectors.siem.places import values
from tocsin_connectors.siem.records import address, child, described, text, union, utc
from tocsin_connectors.siem.relating import related
from tocsin_connectors.siem.secops.chronicle import Chronicle
from tocsin_connectors.siem.secops.udm import FIELDS, entities_of

_CAPITAL = re.compile(r"(?<=[a-z0-9])([A-Z])")
_SHOWN = (
    *("metadata.eventType", "metadata.productName", "metadata.logType", "metadata.description"),
    *("principal.hostname", "principal.ip", "principal.user.userid", "target.hostname"),
    *("target.ip", "target.url", "target.process.commandLine", "principal.process.commandLine"),
    *("target.file.fullPath", "network.dns.questions.name", "network.applicationProtocol"),
    *("securityResult.action", "securityResult.summary"),
)
"""What an analyst would look at."""


async def events(
    chronicle: Chronicle, entity: Entity, window: Window, limit: int
) -> AsyncGenerator[SiemEvent, None]:
    """Yield the latest events that name an entity.

    Raises `TryLater` at the end where there were more than a search returns.
    """
    if not _can_be_named(entity):
        return
    rows, more = await chronicle.search(query(entity), window)
    found = []
    for row in rows:
        with suppress(ValueError):  # what cannot be understood costs no other
            event = event_of(row)
            if event.occurred_at in window and is_named(entity, event.entities):
                found.append(event)
    found.sort(key=lambda it: it.occurred_at, reverse=True)
    for event in found[:limit]:
        yield event
    if more:
        raise TryLater(f"only {len(rows):,} of the events were searched")


def query(entity: Entity) -> str:
    """Return the search for events that name an entity, in capitals or not."""
    case = "" if entity.kind is EntityKind.IP else " nocase"
    wanted = literal(entity.value)
    return " OR ".join(f"{spelt(name)} = {wanted}{case}" for name in FIELDS[entity.kind])


def literal(value: str) -> str:
    """Return a text as a value of a search; it holds no control characters."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def spelt(place: str) -> str:
    """Return a place as searches spell it: `principal.user.email_addresses`."""
    return _CAPITAL.sub(lambda it: f"_{it[1].lower()}", place)


def _can_be_named(entity: Entity) -> bool:
    """Whether any event can name it: what no address spells, or is on two lines, none does."""
    if entity.kind is EntityKind.IP:
        return address(entity.value) is not None
    return bool(entity.value) and entity.value.isprintable()


def event_of(row: dict[str, Any]) -> SiemEvent:
    """Return what an event tells; ValueError where it does not say when that was."""
    event = child(row, "udm")
    metadata = child(event, "metadata")
    told = text(metadata, "eventTimestamp")
    if told is None:
        raise ValueError(f"eventTimestamp is {described(metadata.get('eventTimestamp'))}")
    at = utc(told)
    shown = {name: ", ".join(values(event, name))[:1_000] for name in _SHOWN}
    return SiemEvent(
        external_id=text(metadata, "id") or text(row, "name"),
        occurred_at=at,
        summary=" ".join(_summary(event, metadata).split())[:1_000],
        entities=union([entities_of(event)]),
        relations=union([_relations(event, metadata, at)]),
        fields={name: value for name, value in shown.items() if value},
    )


def _summary(event: dict[str, Any], metadata: dict[str, Any]) -> str:
    """Say what happened: `NETWORK_DNS of ExtraHop: laptop-7, 10.1.2.3 to example.com`."""
    what = text(metadata, "eventType") or "an event"
    product = text(metadata, "productName")
    ends = (
        ", ".join(dict.fromkeys(it.value for it in entities_of(event, within)))
        for within in ("principal.", "target.")
    )
    who = " to ".join(filter(None, ends))
    said = text(metadata, "description")
    return ": ".join(filter(None, [f"{what} of {product}" if product else what, who, said]))


def _relations(event: dict[str, Any], metadata: dict[str, Any], at: datetime) -> Iterator[Relation]:
    """Yield who has spoken with whom."""
    if (text(metadata, "eventType") or "").startswith("NETWORK_"):
        sources = [it for it in entities_of(event, "principal.") if it.kind in _ENDS]
        targets = [it for it in entities_of(event, "target.") if it.kind in _ENDS]
        yield from related(sources, RelationType.CONNECTED_TO, targets, at)


_ENDS = frozenset({EntityKind.IP, EntityKind.HOST})
