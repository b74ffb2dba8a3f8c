"""From a case to the incident that it is, with the alerts that were attached to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any
from urllib.parse import quote

from tocsin import Entity, Incident, IncidentStatus, Severity
from tocsin_connectors.siem.elastic.alerts import alert_of
from tocsin_connectors.siem.elastic.fields import entities_of, techniques_of
from tocsin_connectors.siem.elastic.flattening import flattened
from tocsin_connectors.siem.elastic.settings import Settings
from tocsin_connectors.siem.elastic.words import OBSERVABLES, SEVERITIES, STATUSES
from tocsin_connectors.siem.records import child, children, described, number, text, union, utc
from tocsin_connectors.siem.typed import typed

PREFIX = "case:"
"""Before the id of a case, which tells it from an alert's."""


def incident_of(case: Mapping[str, Any], settings: Settings) -> Incident:
    """Return the incident of a case; ValueError where it has no id or no time."""
    record = dict(case)
    identifier, created = text(record, "id"), text(record, "created_at")
    if identifier is None or created is None:
        raise ValueError(f"id is {described(case.get('id'))}, created_at {created or 'missing'}")
    word, status = text(record, "severity"), text(record, "status")
    severity = SEVERITIES.get((word or "").casefold())
    shown = number(record, "incremental_id")
    return Incident(
        external_id=f"{PREFIX}{identifier}",
        external_number=None if shown is None else str(shown),
        title=text(record, "title") or "Elastic case",
        description=text(record, "description") or "",
        severity=severity or Severity.MEDIUM,
        severity_assumed=severity is None,
        raw_severity=word,
        status=STATUSES.get((status or "").casefold(), IncidentStatus.NEW),
        raw_status=status,
        occurred_at=utc(created),
        changed_at=changed_at(record) or utc(created),
        source_url=f"{settings.kibana}/app/security/cases/{quote(identifier, safe='')}",
        entities=union([_observed(record)]),
    )


def changed_at(case: Mapping[str, Any]) -> datetime | None:
    """Return when a case was last changed, None where it never was; ValueError for no time."""
    told = text(dict(case), "updated_at")
    return utc(told) if told else None


def has_alerts(case: Mapping[str, Any]) -> bool:
    """Return whether alerts are attached to a case."""
    return (number(dict(case), "totalAlerts") or 0) > 0


def with_alerts(incident: Incident, hits: Iterable[Mapping[str, Any]]) -> Incident:
    """Return the incident with these alerts, and with what they name."""
    alerts, entities, techniques = [], [incident.entities], [incident.techniques]
    for hit in hits:
        with suppress(ValueError):  # what is no alert costs no other
            alerts.append(alert_of(hit))
            flat = flattened(child(dict(hit), "_source"))
            entities.append(tuple(entities_of(flat)))
            techniques.append(tuple(techniques_of(flat)))
    return replace(
        incident,
        alerts=tuple(alerts),
        entities=union(entities),
        techniques=union(techniques),
    )


def _observed(case: dict[str, Any]) -> Iterator[Entity]:
    for observable in children(case, "observables"):
        kind = OBSERVABLES.get(text(observable, "typeKey") or "")
        if kind and (value := text(observable, "value")):
            yield from typed(kind, value)
