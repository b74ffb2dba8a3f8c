"""Search for the logs that name an entity.

https://docs.datadoghq.com/logs/explorer/search_syntax/
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from datetime import datetime

from tocsin import Entity, EntityKind, Relation, RelationType, SiemEvent, Window
from tocsin_connectors.siem.datadog.client import DatadogClient, DatadogRecord
from tocsin_connectors.siem.datadog.mapping import LOG_TABLE
from tocsin_connectors.siem.entity_fields import TableFinds
from tocsin_connectors.siem.records import (
    child,
    contains_entity,
    parse_utc,
    quote_phrase,
    relate,
    text,
    text_at,
)

LOG_FIELDS = {
    EntityKind.IP: ("@network.client.ip", "@network.destination.ip"),
    EntityKind.HOST: ("host", "@hostname"),
    EntityKind.USER: ("@usr.id", "@usr.name"),
    EntityKind.EMAIL: ("@usr.email",),
    EntityKind.DOMAIN: ("@dns.question.name", "@http.url_details.host"),
    EntityKind.URL: ("@http.url",),
    EntityKind.PROCESS: ("@process.executable.name",),
    EntityKind.FILE: ("@file.path", "@process.executable.path"),
    EntityKind.FILE_HASH: ("@file.hashes", "@process.executable.hashes"),
}
"""Attributes of logs by kind."""
_PAGE = 200
_MAX_PAGES = 50
_MAX_ENTITIES = 200
_MAX_TEXT_LENGTH = 500
_SHOWN = (
    *("evt.name", "evt.outcome", "network.client.ip", "network.destination.ip", "usr.id"),
    *("usr.name", "http.url", "http.method", "http.status_code", "process.executable.path"),
    *("file.path", "dns.question.name"),
)


def build_query(entity: Entity) -> str | None:
    """Return the query for logs that name an entity, or None if no attribute can.

    The value is a phrase: quotes and backslashes are escaped. A hash has its algorithm before it.
    """
    names = LOG_FIELDS.get(entity.kind)
    if not names:
        return None
    if entity.kind is EntityKind.FILE_HASH:
        return " OR ".join(f"{name}:*{entity.value}" for name in names if entity.value.isalnum())
    return " OR ".join(f"{name}:{quote_phrase(entity.value)}" for name in names)


async def search_logs(
    client: DatadogClient, entity: Entity, window: Window, limit: int
) -> AsyncGenerator[SiemEvent, None]:
    """Yield the latest logs that name an entity. Invalid ones are skipped."""
    query, token, found = build_query(entity), None, 0
    for _ in range(_MAX_PAGES if query else 0):
        page = await client.logs(query or "", window, token, _PAGE)
        for record in page.records:
            event = build_event(record, window)
            if event is None or not contains_entity(entity, event.entities):
                continue
            yield event
            found += 1
            if found >= limit:
                return
        token = page.next_token
        if token is None:
            return


def build_event(record: DatadogRecord, window: Window) -> SiemEvent | None:
    """Return the event of a log, or None without a time in the window."""
    attributes = child(record, "attributes")
    custom = child(attributes, "attributes")
    try:
        at = parse_utc(text(attributes, "timestamp") or "")
    except ValueError:
        return None
    if at not in window:
        return None
    found = LOG_TABLE.find({"host": attributes.get("host"), **custom}, _MAX_ENTITIES)
    shown = {name: text_at(custom, name) for name in _SHOWN}
    summary = text(attributes, "message") or text_at(custom, "evt.name") or "a log"
    service = text(attributes, "service")
    return SiemEvent(
        external_id=text(record, "id"),
        occurred_at=at,
        summary=" ".join((f"{service}: {summary}" if service else summary).split())[
            :_MAX_TEXT_LENGTH
        ],
        entities=found.entities,
        relations=tuple(_find_relations(found, at)),
        fields={name: value[:_MAX_TEXT_LENGTH] for name, value in shown.items() if value},
    )


def _find_relations(found: TableFinds, at: datetime) -> Iterator[Relation]:
    yield from relate(found.roles.sources, RelationType.CONNECTED_TO, found.roles.targets, at)
