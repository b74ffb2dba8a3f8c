"""Making what a provider hands over fit for storing: bounded, and text that both databases hold."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tocsin.model import Alert, Entity, Incident
from tocsin.store.text import clean_identifier, clean_text

TITLE = 1_000
DESCRIPTION = 65_536
WORD = 200
IDENTIFIER = 500
ALERT_IDENTIFIER = 200
ADDRESS = 4_096
TECHNIQUES = 100
ENTITIES = 1_000  # of one incident; a scan of a whole network would name many more
# PostgreSQL's index rows hold 2,704 bytes
ENTITY_BYTES = 2_000


def _clean_entity(entity: Entity) -> Entity:
    value = clean_text(entity.value, ENTITY_BYTES)
    if value is entity.value:
        return entity
    return Entity(entity.kind, value.encode()[:ENTITY_BYTES].decode("utf-8", "ignore"))


def clean_entities(entities: Iterable[Entity]) -> tuple[Entity, ...]:
    """Return the entities that say something, each once, in the order in which they came."""
    cleaned = dict.fromkeys(map(_clean_entity, entities))
    return tuple(entity for entity in cleaned if entity.value)


def _clean_alert(alert: Alert) -> Alert:
    return replace(
        alert,
        external_id=clean_identifier(alert.external_id, ALERT_IDENTIFIER),
        title=clean_text(alert.title, TITLE),
    )


def clean_incident(incident: Incident) -> Incident:
    """Return the incident with every part within its bound."""
    return replace(
        incident,
        external_id=clean_identifier(incident.external_id, IDENTIFIER),
        external_number=clean_text(incident.external_number, WORD),
        title=clean_text(incident.title, TITLE) or "(no title)",
        description=clean_text(incident.description, DESCRIPTION),
        raw_severity=clean_text(incident.raw_severity, WORD),
        raw_status=clean_text(incident.raw_status, WORD),
        merged_into=incident.merged_into and clean_identifier(incident.merged_into, IDENTIFIER),
        source_url=clean_text(incident.source_url, ADDRESS),
        techniques=tuple(clean_text(name, WORD) for name in incident.techniques[:TECHNIQUES]),
        entities=clean_entities(incident.entities),
        alerts=tuple(map(_clean_alert, incident.alerts)),
    )
