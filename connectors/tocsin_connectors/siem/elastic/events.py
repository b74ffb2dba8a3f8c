"""Mapping of documents of any index to events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from tocsin import Entity, EntityKind, Relation, RelationType, SiemEvent, values_at
from tocsin_connectors.siem.elastic.mapping import (
    TIMESTAMP,
    find_entities,
    first_text,
)
from tocsin_connectors.siem.records import (
    child,
    contains_entity,
    parse_entities,
    parse_utc,
    relate,
    text,
    texts_at,
    union,
)

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
    source = child(dict(hit), "_source")
    value = first_text(source, TIMESTAMP)
    if value is None:
        raise ValueError(f"{TIMESTAMP} is missing or not a string")
    at, place = parse_utc(value), (text(dict(hit), "_index"), text(dict(hit), "_id"))
    entities = union([find_entities(source)])
    if not contains_entity(entity, entities):
        return None
    return SiemEvent(
        external_id="/".join(part for part in place if part) or None,
        occurred_at=at,
        summary=" ".join(_summarize(source).split()),
        entities=entities,
        relations=union([_find_relations(source, at)]),
        fields={name: value for name in _EVENT_FIELDS if (value := _format_field(source, name))},
    )


def _format_field(source: dict[str, Any], name: str) -> str:
    values = (value for value in values_at(source, name) if not isinstance(value, Mapping))
    return ", ".join(text({"": str(value)}, "") or "" for value in values)


def _summarize(source: dict[str, Any]) -> str:
    """Summarize an event: `system.auth ssh_login failure: of ann, from 203.0.113.7, at web-1`."""
    kind = first_text(source, "event.dataset") or first_text(source, "event.module") or "an event"
    what = [kind, first_text(source, "event.action"), first_text(source, "event.outcome")]
    parties = {
        "of": "user.name",
        "from": "source.ip",
        "to": "destination.ip",
        "at": "host.name",
        "by": "process.executable",
    }
    parts = [
        f"{word} {value}" for word, name in parties.items() if (value := first_text(source, name))
    ]
    parts += [message[:_MAX_MESSAGE_LENGTH] for message in texts_at(source, "message")[:1]]
    return " ".join(filter(None, what)) + (f": {', '.join(parts)}" if parts else "")


def _find_relations(source: dict[str, Any], at: datetime) -> Iterator[Relation]:
    """Yield connections, sign-ins, process starts and name resolutions."""
    hosts = _parse_field(source, "host.name", EntityKind.HOST)
    sources, targets = (
        _parse_field(source, f"{name}.ip", EntityKind.IP) for name in ("source", "destination")
    )
    yield from relate(sources, RelationType.CONNECTED_TO, targets, at)
    asked = _parse_field(source, "dns.question.name", EntityKind.DOMAIN)
    answers = _parse_field(source, "dns.resolved_ip", EntityKind.IP)
    yield from relate(asked, RelationType.RESOLVES_TO, answers, at)
    categories, types = texts_at(source, "event.category"), texts_at(source, "event.type")
    if "authentication" in categories and first_text(source, "event.outcome") == "success":
        users = _parse_field(source, "user.name", EntityKind.USER)
        yield from relate(users, RelationType.LOGGED_ON_TO, hosts, at)
    if "process" in categories and "start" in types:
        started = _parse_field(source, "process.executable", EntityKind.PROCESS)
        parents = _parse_field(source, "process.parent.executable", EntityKind.PROCESS)
        yield from relate(started, RelationType.EXECUTED_ON, hosts, at)
        yield from relate(parents, RelationType.STARTED, started, at)


def _parse_field(source: dict[str, Any], name: str, kind: EntityKind) -> list[Entity]:
    return [entity for value in texts_at(source, name) for entity in parse_entities(kind, value)]
