"""From a document of any index to the event that it tells of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from tocsin import Entity, EntityKind, Relation, RelationType, SiemEvent
from tocsin_connectors.siem.elastic.alerts import TIMESTAMP, first
from tocsin_connectors.siem.elastic.fields import entities_of
from tocsin_connectors.siem.elastic.flattening import Flat, flattened
from tocsin_connectors.siem.matching import is_named
from tocsin_connectors.siem.records import child, text, texts, union, utc
from tocsin_connectors.siem.relating import related
from tocsin_connectors.siem.typed import typed

_FIELDS = (
    *("event.dataset", "event.category", "event.action", "event.outcome", "event.reason"),
    *("message", "rule.name", "host.name", "user.name", "user.domain", "source.ip"),
    *("source.port", "destination.ip", "destination.port", "destination.domain"),
    *("network.protocol", "network.bytes", "dns.question.name", "dns.response_code", "url.full"),
    *("http.request.method", "http.response.status_code", "user_agent.original"),
    *("process.executable", "process.command_line", "process.pid", "process.parent.executable"),
    *("file.path", "file.hash.sha256", "registry.path", "email.subject", "cloud.instance.id"),
)
"""What an analyst would look at."""
_LONGEST = 200


def event_of(hit: Mapping[str, Any], entity: Entity) -> SiemEvent | None:
    """Return what a document tells of, None where it does not name the entity after all.

    Raises ValueError where it does not say when that was.
    """
    flat = flattened(child(dict(hit), "_source"))
    told = first(flat, TIMESTAMP)
    if told is None:
        raise ValueError(f"{TIMESTAMP} is missing or no text")
    at, place = utc(told), (text(dict(hit), "_index"), text(dict(hit), "_id"))
    entities = union([entities_of(flat)])
    if not is_named(entity, entities):
        return None
    return SiemEvent(
        external_id="/".join(it for it in place if it) or None,
        occurred_at=at,
        summary=" ".join(_summary(flat).split()),
        entities=entities,
        relations=union([_relations(flat, at)]),
        fields={name: value for name in _FIELDS if (value := _shown(flat, name))},
    )


def _shown(flat: Flat, name: str) -> str:
    values = flat.get(name, ())
    return ", ".join(text({"": str(it)}, "") or "" for it in values)


def _summary(flat: Flat) -> str:
    """Say what happened: `system.auth ssh_login failure: of ann, from 203.0.113.7, at web-1`."""
    kind = first(flat, "event.dataset") or first(flat, "event.module") or "an event"
    what = [kind, first(flat, "event.action"), first(flat, "event.outcome")]
    whom = {
        "of": "user.name",
        "from": "source.ip",
        "to": "destination.ip",
        "at": "host.name",
        "by": "process.executable",
    }
    parts = [f"{word} {value}" for word, name in whom.items() if (value := first(flat, name))]
    parts += [it[:_LONGEST] for it in texts(flat, "message")[:1]]
    return " ".join(filter(None, what)) + (f": {', '.join(parts)}" if parts else "")


def _relations(flat: Flat, at: datetime) -> Iterator[Relation]:
    """Yield who has spoken with whom, who has signed in, what was started and what resolved."""
    hosts = _all(flat, "host.name", EntityKind.HOST)
    sources, targets = (_all(flat, f"{it}.ip", EntityKind.IP) for it in ("source", "destination"))
    yield from related(sources, RelationType.CONNECTED_TO, targets, at)
    asked = _all(flat, "dns.question.name", EntityKind.DOMAIN)
    answers = _all(flat, "dns.resolved_ip", EntityKind.IP)
    yield from related(asked, RelationType.RESOLVES_TO, answers, at)
    categories, types = texts(flat, "event.category"), texts(flat, "event.type")
    if "authentication" in categories and first(flat, "event.outcome") == "success":
        users = _all(flat, "user.name", EntityKind.USER)
        yield from related(users, RelationType.LOGGED_ON_TO, hosts, at)
    if "process" in categories and "start" in types:
        started = _all(flat, "process.executable", EntityKind.PROCESS)
        parents = _all(flat, "process.parent.executable", EntityKind.PROCESS)
        yield from related(started, RelationType.EXECUTED_ON, hosts, at)
        yield from related(parents, RelationType.STARTED, started, at)


def _all(flat: Flat, name: str, kind: EntityKind) -> list[Entity]:
    return [entity for value in texts(flat, name) for entity in typed(kind, value)]
