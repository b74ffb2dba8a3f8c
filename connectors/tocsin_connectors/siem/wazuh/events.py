"""Mapping of indexer documents to events."""

from __future__ import annotations

from typing import Any

from tocsin import Entity, SiemEvent
from tocsin_connectors.siem.indices.documents import include_queried_entity
from tocsin_connectors.siem.records import text_at, value_at
from tocsin_connectors.siem.wazuh.mapping import find_entities, parse_detection
from tocsin_connectors.siem.wazuh.queries import ENTITY_FIELDS

_EVENT_FIELDS = (
    *("rule.groups", "rule.firedtimes", "decoder.name", "location", "full_log"),
    *("data.srcip", "data.srcuser", "data.dstuser", "data.protocol", "syscheck.event"),
    *("wazuh.rule.tags", "wazuh.integration.category", "event.action", "event.outcome"),
    *("source.ip", "destination.ip", "user.name", "process.command_line"),
)
_MAX_TEXT_LENGTH = 500


def build_event(hit: dict[str, Any], entity: Entity) -> SiemEvent | None:
    """Return the event of a hit, or None if it does not name the entity.

    Raises ValueError if the hit is not an alert.
    """
    detection, document = parse_detection(hit), hit["_source"]
    entities = include_queried_entity(find_entities(document), entity, document, ENTITY_FIELDS)
    if entities is None:
        return None
    where = text_at(document, "agent.name", "wazuh.agent.name")
    title = f"{detection.rule.title} (rule {detection.rule_id})"
    fields = {path: value_at(document, path) for path in _EVENT_FIELDS}
    return SiemEvent(
        external_id=detection.document_id,
        occurred_at=detection.at,
        summary=" ".join((f"{title} on {where}" if where else title).split()),
        entities=entities,
        fields={
            "level": detection.rule.level,
            **{path: _shorten(value) for path, value in fields.items() if value is not None},
        },
    )


def _shorten(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("\0", "")[:_MAX_TEXT_LENGTH]
    return value if isinstance(value, int | float | bool) else str(value)[:_MAX_TEXT_LENGTH]
