"""Search for the events that name an entity.

Fields are those of the Common Information Model:
https://docs.exabeam.com/en/content/all/exabeam-security-content-cim.html
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import suppress
from datetime import datetime

from tocsin import Entity, EntityKind, Relation, RelationType, SiemEvent, Window
from tocsin_connectors.siem.entity_fields import FieldContent, FieldTable, TableFinds
from tocsin_connectors.siem.exabeam.client import (
    MAX_ROWS,
    SECOND,
    ExabeamClient,
    ExabeamRecord,
)
from tocsin_connectors.siem.exabeam.mapping import parse_time
from tocsin_connectors.siem.records import contains_entity, quote_phrase, relate, text, text_at

EVENT_FIELDS = {
    EntityKind.IP: ("src_ip", "dest_ip"),
    EntityKind.HOST: ("src_host", "dest_host", "host"),
    EntityKind.USER: ("user", "src_user", "dest_user"),
    EntityKind.EMAIL: ("email_address",),
    EntityKind.DOMAIN: ("web_domain", "dns_query"),
    EntityKind.URL: ("url",),
    EntityKind.PROCESS: ("process_name",),
    EntityKind.FILE: ("file_path", "process_path"),
    EntityKind.FILE_HASH: ("hash_md5", "hash_sha1", "hash_sha256"),
}
"""Fields of events by kind."""
EVENT_TABLE = FieldTable(
    sources={
        FieldContent.ADDRESS: ("src_ip",),
        FieldContent.HOST: ("src_host",),
        FieldContent.USER: ("src_user",),
    },
    targets={
        FieldContent.ADDRESS: ("dest_ip",),
        FieldContent.HOST: ("dest_host",),
        FieldContent.USER: ("dest_user",),
    },
    others={
        FieldContent.HOST: ("host",),
        FieldContent.USER: ("user",),
        FieldContent.EMAIL: ("email_address",),
        FieldContent.DOMAIN: ("web_domain", "dns_query"),
        FieldContent.URL: ("url",),
        FieldContent.PROGRAM: ("process_name", "process_path"),
        FieldContent.FILE: ("file_path",),
        FieldContent.FILE_HASH: ("hash_md5", "hash_sha1", "hash_sha256"),
    },
)
_TIME = "approxLogTime"
_SHOWN = ("vendor", "product", "activity_type", "outcome", "msg_type")
_COLUMNS = ("id", _TIME, *_SHOWN, *(name for names in EVENT_FIELDS.values() for name in names))
_MAX_ENTITIES = 200
_MAX_TEXT_LENGTH = 500
_MAX_SEARCHES = 20


def build_query(entity: Entity) -> str | None:
    """Return the query for events that name an entity, or None if no field can."""
    names = EVENT_FIELDS.get(entity.kind)
    if not names:
        return None
    phrase = quote_phrase(entity.value)
    return " OR ".join(f"{name}:{phrase}" for name in names)


async def search_events(
    client: ExabeamClient, entity: Entity, window: Window, limit: int
) -> AsyncGenerator[SiemEvent, None]:
    """Yield the latest events that name an entity. Invalid ones are skipped.

    There are no pages: the search is repeated up to the second of the earliest event, until it
    returns no earlier one.
    """
    query, part, found = build_query(entity), window, 0
    seen: set[str] = set()
    for _ in range(_MAX_SEARCHES if query else 0):
        rows = await client.events(query or "", part, _COLUMNS, MAX_ROWS)
        for row in rows:
            event = build_event(row, window)
            name = text(row, "id")
            if event is None or name in seen or not contains_entity(entity, event.entities):
                continue
            if name:
                seen.add(name)
            yield event
            found += 1
            if found >= limit:
                return
        if (end := _find_end(rows, part)) is None:
            return
        part = Window(part.start, end)


def _find_end(rows: Sequence[ExabeamRecord], part: Window) -> datetime | None:
    """Return the end of the second of the earliest event, if the search gets any further."""
    times = [at for row in rows if (at := _parse_optional_time(row)) and at in part]
    if not times:
        return None
    end = min(times).replace(microsecond=0) + SECOND
    return end if part.start < end < part.end else None


def _parse_optional_time(row: ExabeamRecord) -> datetime | None:
    with suppress(ValueError):
        return parse_time(row, _TIME)
    return None


def build_event(row: ExabeamRecord, window: Window) -> SiemEvent | None:
    """Return the event of a row, or None without a time in the window."""
    at = _parse_optional_time(row)
    if at is None or at not in window:
        return None
    found = EVENT_TABLE.find(row, _MAX_ENTITIES)
    shown = {name: text_at(row, name) for name in _COLUMNS if name not in ("id", _TIME)}
    words = (shown[name] for name in ("vendor", "product", "activity_type", "outcome"))
    summary = " ".join(word for word in words if word) or "an event"
    return SiemEvent(
        external_id=text(row, "id"),
        occurred_at=at,
        summary=" ".join(summary.split())[:_MAX_TEXT_LENGTH],
        entities=found.entities,
        relations=tuple(_find_relations(found, at)),
        fields={name: value[:_MAX_TEXT_LENGTH] for name, value in shown.items() if value},
    )


def _find_relations(found: TableFinds, at: datetime) -> Iterator[Relation]:
    clients, servers = (
        [entity for entity in side if entity.kind is EntityKind.IP] for side in found.roles
    )
    yield from relate(clients, RelationType.CONNECTED_TO, servers, at)
