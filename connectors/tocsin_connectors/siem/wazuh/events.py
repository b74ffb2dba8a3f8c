"""From a document of the indexer to the event that it is, for investigations."""

from __future__ import annotations

from typing import Any

from tocsin import Entity, SiemEvent
from tocsin_connectors.siem.indices.documents import text_at, value_at
from tocsin_connectors.siem.indices.naming import with_asked
from tocsin_connectors.siem.wazuh.alerts import detection_of, entities_in
from tocsin_connectors.siem.wazuh.queries import ENTITY_FIELDS

_FIELDS = (
    *("rule.groups", "rule.firedtimes", "decoder.name", "location", "full_log"),
    *("data.srcip", "data.srcuser", "data.dstuser", "data.protocol", "syscheck.event"),
    *("wazuh.rule.tags", "wazuh.integration.category", "event.action", "event.outcome"),
    *("source.ip", "destination.ip", "user.name", "process.command_line"),
)
_LONGEST = 500


def event_of(hit: dict[str, Any], entity: Entity) -> SiemEvent | None:
    """Return the event that a hit is, None where it does not name the entity after all.

    Raises ValueError for what is no alert.
    """
    detection, document = detection_of(hit), hit["_source"]
    entities = with_asked(entities_in(document), entity, document, ENTITY_FIELDS)
    if entities is None:
        return None
    where = text_at(document, "agent.name", "wazuh.agent.name")
    title = f"{detection.rule.title} (rule {detection.rule_id})"
    fields = {place: value_at(document, place) for place in _FIELDS}
    return SiemEvent(
        external_id=detection.document_id,
        occurred_at=detection.at,
        summary=" ".join((f"{title} at {where}" if where else title).split()),
        entities=entities,
        fields={
            "level": detection.rule.level,
            **{place: _short(value) for place, value in fields.items() if value is not None},
        },
    )


def _short(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("\0", "")[:_LONGEST]
    return value if isinstance(value, int | float | bool) else str(value)[:_LONGEST]
