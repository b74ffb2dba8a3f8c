"""Mapping of log documents to events."""

from __future__ import annotations

from typing import Any

from tocsin import Entity, EntityKind, SiemEvent
from tocsin_connectors.siem.indices.documents import include_queried_entity, summarize_document
from tocsin_connectors.siem.indices.ecs_fields import find_log_entities
from tocsin_connectors.siem.opensearch.mapping import parse_time
from tocsin_connectors.siem.records import describe_value, text_at, value_at

ENTITY_FIELDS = {
    EntityKind.IP: (
        *("source.ip", "destination.ip", "client.ip", "server.ip", "host.ip", "related.ip"),
        *("winlog.event_data.IpAddress", "srcip", "dstip", "src_ip", "dest_ip", "id.orig_h"),
    ),
    EntityKind.HOST: (
        *("host.name", "host.hostname", "related.hosts", "winlog.computer_name"),
        *("winlog.event_data.WorkstationName", "observer.hostname"),
    ),
    EntityKind.USER: (
        *("user.name", "user.target.name", "related.user", "winlog.event_data.TargetUserName"),
        *("winlog.event_data.SubjectUserName", "userIdentity.userName"),
    ),
    EntityKind.DOMAIN: ("dns.question.name", "url.domain", "destination.domain"),
    EntityKind.URL: ("url.full", "url.original"),
    EntityKind.FILE_HASH: (
        *(
            f"{owner}.hash.{kind}"
            for owner in ("file", "process")
            for kind in ("md5", "sha1", "sha256")
        ),
        "related.hash",
    ),
    EntityKind.FILE: ("file.path", "process.executable"),
    EntityKind.EMAIL: ("email.from.address", "email.to.address", "user.email"),
}
"""Fields that hold entities, by kind: ECS, and what Security Analytics maps to it."""
_SUMMARY_FIELDS = ("message", "event.original", "log", "event.action")
_EVENT_FIELDS = (
    *("event.action", "event.outcome", "event.category", "event.code", "rule.name", "message"),
    *("source.ip", "destination.ip", "user.name", "host.name", "process.command_line", "url.full"),
)
_MAX_TEXT_LENGTH = 500


def build_event(hit: dict[str, Any], field: str, entity: Entity) -> SiemEvent | None:
    """Return the event of a hit, or None if it does not name the entity.

    Raises ValueError if it has no time.
    """
    document = hit.get("_source")
    occurred_at = parse_time(value_at(document, field))
    if occurred_at is None or not isinstance(document, dict):
        raise ValueError(f"{field} is {describe_value(value_at(document, field))}")
    found = find_log_entities(document, limit=200).entities
    entities = include_queried_entity(found, entity, document, ENTITY_FIELDS)
    if entities is None:
        return None
    summary = " ".join(
        (text_at(document, *_SUMMARY_FIELDS) or summarize_document(document)).split()
    )[:_MAX_TEXT_LENGTH]
    fields = {path: text_at(document, path) for path in _EVENT_FIELDS}
    name = hit.get("_id")
    return SiemEvent(
        external_id=name if isinstance(name, str) else None,
        occurred_at=occurred_at,
        summary=summary or "an event",
        entities=entities,
        fields={path: text[:_MAX_TEXT_LENGTH] for path, text in fields.items() if text},
    )
