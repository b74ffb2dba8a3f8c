"""From a case to the incident that it is, with the alerts that were attached to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any
from urllib.parse import quote

from tocsin import Entity, Incident, IncidentStatus, Severity
from tocsin_connectors.siem.elastic.alerts import build_alert
from tocsin_connectors.siem.elastic.fields import find_entities, find_techniques
from tocsin_connectors.siem.elastic.flattening import flatten_document
from tocsin_connectors.siem.elastic.settings import ElasticSettings
from tocsin_connectors.siem.elastic.words import OBSERVABLE_TYPES, SEVERITIES, STATUSES
from tocsin_connectors.siem.records import (
    child,
    children,
    describe_value,
    number,
    parse_utc,
    text,
    union,
)
from tocsin_connectors.siem.typed import parse_entities

CASE_PREFIX = "case:"
"""Before the id of a case, which tells it from an alert's."""


def build_case_incident(case: Mapping[str, Any], settings: ElasticSettings) -> Incident:
    """Return the incident of a case; ValueError where it has no id or no time."""
    record = dict(case)
    identifier, created = text(record, "id"), text(record, "created_at")
    if identifier is None or created is None:
        raise ValueError(
            f"id is {describe_value(case.get('id'))}, created_at {created or 'missing'}"
        )
    word, status = text(record, "severity"), text(record, "status")
    severity = SEVERITIES.get((word or "").casefold())
    shown = number(record, "incremental_id")
    return Incident(
        external_id=f"{CASE_PREFIX}{identifier}",
        external_number=None if shown is None else str(shown),
        title=text(record, "title") or "Elastic case",
        description=text(record, "description") or "",
        severity=severity or Severity.MEDIUM,
        severity_assumed=severity is None,
        raw_severity=word,
        status=STATUSES.get((status or "").casefold(), IncidentStatus.NEW),
        raw_status=status,
        occurred_at=parse_utc(created),
        changed_at=parse_case_update(record) or parse_utc(created),
        source_url=f"{settings.kibana}/app/security/cases/{quote(identifier, safe='')}",
        entities=union([_find_observables(record)]),
    )


def parse_case_update(case: Mapping[str, Any]) -> datetime | None:
    """Return when a case was last changed, None where it never was; ValueError for no time."""
    told = text(dict(case), "updated_at")
    return parse_utc(told) if told else None


def has_alerts(case: Mapping[str, Any]) -> bool:
    """Return whether alerts are attached to a case."""
    return (number(dict(case), "totalAlerts") or 0) > 0


def attach_alerts(incident: Incident, hits: Iterable[Mapping[str, Any]]) -> Incident:
    """Return the incident with these alerts, and with what they name."""
    alerts, entities, techniques = [], [incident.entities], [incident.techniques]
    for hit in hits:
        with suppress(ValueError):  # what is no alert costs no other
            alerts.append(build_alert(hit))
            flat = flatten_document(child(dict(hit), "_source"))
            entities.append(tuple(find_entities(flat)))
            techniques.append(tuple(find_techniques(flat)))
    return replace(
        incident,
        alerts=tuple(alerts),
        entities=union(entities),
        techniques=union(techniques),
    )


def _find_observables(case: dict[str, Any]) -> Iterator[Entity]:
    for observable in children(case, "observables"):
        kind = OBSERVABLE_TYPES.get(text(observable, "typeKey") or "")
        if kind and (value := text(observable, "value")):
            yield from parse_entities(kind, value)
