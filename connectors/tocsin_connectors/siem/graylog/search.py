"""Search for the messages that name an entity."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from datetime import datetime
from typing import Any

from tocsin import Entity, EntityKind, Relation, RelationType, SiemEvent, Window
from tocsin_connectors.siem.graylog.client import GraylogClient, GraylogRecord
from tocsin_connectors.siem.graylog.mapping import EVENT_TABLE, parse_time
from tocsin_connectors.siem.records import contains_entity, quote_phrase, relate, text, union

MESSAGE_FIELDS = {
    EntityKind.IP: (
        *("source_ip", "destination_ip", "source_nat_ip", "destination_nat_ip", "host_ip"),
        *("associated_ip", "src_ip", "dst_ip", "srcip", "dstip"),
    ),
    EntityKind.HOST: ("host_hostname", "source_hostname", "destination_hostname"),
    EntityKind.DOMAIN: (
        *("query_request", "dns_query", "http_host", "source_hostname", "destination_hostname"),
    ),
    EntityKind.USER: (
        *("user_name", "source_user_name", "destination_user_name", "associated_user_name"),
    ),
    EntityKind.EMAIL: ("user_email",),
    EntityKind.URL: ("http_url", "http_uri"),
    EntityKind.PROCESS: ("process_name",),
    EntityKind.FILE: ("file_path", "process_path"),
    EntityKind.FILE_HASH: (
        *("hash_md5", "hash_sha1", "hash_sha256", "hash_sha512", "associated_hash"),
    ),
}
"""Fields of messages by kind, of Graylog's information model."""
_SHOWN = ("timestamp", "source", "message", "gl2_message_id", "event_action", "event_outcome")
_COLUMNS = tuple(dict.fromkeys([*_SHOWN, *union(MESSAGE_FIELDS.values())]))
_PAGE = 100
_MAX_WINDOW = 10_000
"""Number of messages that a search can page through."""
_MAX_ENTITIES = 200
_MAX_TEXT_LENGTH = 500
_NO_VALUE = "-"


def build_query(entity: Entity) -> str | None:
    """Return the query for messages that name an entity, or None if no field can."""
    names = MESSAGE_FIELDS.get(entity.kind)
    if not names:
        return None
    phrase = quote_phrase(entity.value)
    return " OR ".join(f"{name}:{phrase}" for name in names)


async def search_messages(
    client: GraylogClient, entity: Entity, window: Window, limit: int
) -> AsyncGenerator[SiemEvent, None]:
    """Yield the latest messages that name an entity. Invalid ones are skipped."""
    query = build_query(entity)
    offset = found = 0
    while query and found < limit and offset < _MAX_WINDOW:
        size = min(_PAGE, _MAX_WINDOW - offset)
        rows = await client.messages(query, window, _COLUMNS, offset, size)
        for row in rows:
            event = build_event(row, window)
            if event is None or not contains_entity(entity, event.entities) or found >= limit:
                continue
            found += 1
            yield event
        offset += len(rows)
        if not rows:
            return


def build_event(row: GraylogRecord, window: Window) -> SiemEvent | None:
    """Return the event of a message, or None without a time in the window."""
    record = {name: value for name, value in row.items() if value not in (None, _NO_VALUE)}
    try:
        at = parse_time(record.get("timestamp"))
    except ValueError:
        return None
    if at not in window:
        return None
    shown = {name: text(record, name) for name in _COLUMNS if name != "timestamp"}
    summary = text(record, "message") or text(record, "event_action") or "a message"
    where = text(record, "source")
    return SiemEvent(
        external_id=text(record, "gl2_message_id"),
        occurred_at=at,
        summary=" ".join((f"{summary} ({where})" if where else summary).split())[:_MAX_TEXT_LENGTH],
        entities=EVENT_TABLE.find(record, _MAX_ENTITIES).entities,
        relations=union([_find_relations(record, at)]),
        fields={name: value[:_MAX_TEXT_LENGTH] for name, value in shown.items() if value},
    )


def _find_relations(record: dict[str, Any], at: datetime) -> Iterator[Relation]:
    roles = EVENT_TABLE.find(record, _MAX_ENTITIES).roles
    clients, servers = (
        [entity for entity in side if entity.kind is EntityKind.IP] for side in roles
    )
    yield from relate(clients, RelationType.CONNECTED_TO, servers, at)
