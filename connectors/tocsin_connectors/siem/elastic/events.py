"""Mapping of documents of any index to events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from tocsin import Entity, EntityKind, Relation, RelationType, SiemEvent
from tocsin_connectors.siem.elastic.mapping import (
    TIMESTAMP,
    FlatDocument,
    find_entities,
    first_text,
    flatten_document,
)
from tocsin_connectors.siem.entities import contains_entity, parse_entities, relate
from tocsin_connectors.siem.records import child, parse_utc, text, texts, union

_EVENT_FIELDS = (
    *("event.dataset", "event.category", "event.action", "event.outcome", "event.reason"),
    *("message", "rule.name", "host.name", "user.name", "user.domain", "source.ip"),
    *("source.port", "destination.ip", "destination.port", "destination.domain"),
    *("network.protocol", "network.bytes", "dns.question.name", "dns.response_code", "url.full"),
    *("http.request.method", "http.response.status_code", "user_agent.original"),
    *("process.executable", "process.command_line", "process.pid", "process.parent.executable"),
    *("file.path", "file.hash.sha256", "registry.path", "email.subject", "cloud.instance.id"),
)
"""Fields that an analyst would look at."""
_MAX_MESSAGE_LENGTH = 200


def build_event(hit: Mapping[str, Any], entity: Entity) -> SiemEvent | None:
    """Return the event of a document, or None if it does not name the entity.

    Raises ValueError if the document has no time.
    """
    flat = flatten_document(child(dict(hit), "_source"))
    told = first_text(flat, TIMESTAMP)
    if told is None:
        raise ValueError(f"{TIMESTAMP} is missing or not a string")
    at, place = parse_utc(told), (text(dict(hit), "_index"), text(dict(hit), "_id"))
    entities = union([find_entities(flat)])
    if not contains_entity(entity, entities):
        return None
    return SiemEvent(
        external_id="/".join(part for part in place if part) or None,
        occurred_at=at,
        summary=" ".join(_summarize(flat).split()),
        entities=entities,
        relations=union([_find_relations(flat, at)]),
        fields={name: value for name in _EVENT_FIELDS if (value := _format_field(flat, name))},
    )


def _format_field(flat: FlatDocument, name: str) -> str:
    values = flat.get(name, ())
    return ", ".join(text({"": str(value)}, "") or "" for value in values)


def _summarize(flat: FlatDocument) -> str:
    """Summarize an event: `system.auth ssh_login failure: of ann, from 203.0.113.7, at web-1`."""
    kind = first_text(flat, "event.dataset") or first_text(flat, "event.module") or "an event"
    what = [kind, first_text(flat, "event.action"), first_text(flat, "event.outcome")]
    whom = {
        "of": "user.name",
        "from": "source.ip",
        "to": "destination.ip",
        "at": "host.name",
        "by": "process.executable",
    }
    parts = [f"{word} {value}" for word, name in whom.items() if (value := first_text(flat, name))]
    parts += [message[:_MAX_MESSAGE_LENGTH] for message in texts(flat, "message")[:1]]
    return " ".join(filter(None, what)) + (f": {', '.join(parts)}" if parts else "")


def _find_relations(flat: FlatDocument, at: datetime) -> Iterator[Relation]:
    """Yield connections, sign-ins, process starts and name resolutions."""
    hosts = _parse_field(flat, "host.name", EntityKind.HOST)
    sources, targets = (
        _parse_field(flat, f"{name}.ip", EntityKind.IP) for name in ("source", "destination")
    )
    yield from relate(sources, RelationType.CONNECTED_TO, targets, at)
    asked = _parse_field(flat, "dns.question.name", EntityKind.DOMAIN)
    answers = _parse_field(flat, "dns.resolved_ip", EntityKind.IP)
    yield from relate(asked, RelationType.RESOLVES_TO, answers, at)
    categories, types = texts(flat, "event.category"), texts(flat, "event.type")
    if "authentication" in categories and first_text(flat, "event.outcome") == "success":
        users = _parse_field(flat, "user.name", EntityKind.USER)
        yield from relate(users, RelationType.LOGGED_ON_TO, hosts, at)
    if "process" in categories and "start" in types:
        started = _parse_field(flat, "process.executable", EntityKind.PROCESS)
        parents = _parse_field(flat, "process.parent.executable", EntityKind.PROCESS)
        yield from relate(started, RelationType.EXECUTED_ON, hosts, at)
        yield from relate(parents, RelationType.STARTED, started, at)


def _parse_field(flat: FlatDocument, name: str, kind: EntityKind) -> list[Entity]:
    return [entity for value in texts(flat, name) for entity in parse_entities(kind, value)]
