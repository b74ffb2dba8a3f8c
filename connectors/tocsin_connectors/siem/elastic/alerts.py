"""From a document of the alerts index to the incident, and to the alert, that it is."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlencode

from tocsin import Alert, Incident, IncidentStatus, Severity
from tocsin_connectors.siem.elastic.fields import entities_of, techniques_of
from tocsin_connectors.siem.elastic.flattening import Flat, flattened
from tocsin_connectors.siem.elastic.settings import Settings
from tocsin_connectors.siem.elastic.words import SEVERITIES, STATUSES
from tocsin_connectors.siem.records import child, described, text, texts, union, utc

TIMESTAMP, STATUS_CHANGED = "@timestamp", "kibana.alert.workflow_status_updated_at"
"""When an alert was made or, by suppression, added to; and when its status last changed."""
BUILDING_BLOCK = "kibana.alert.building_block_type"
"""An alert that has one is only made for other rules to look at."""


def incident_of(hit: Mapping[str, Any], settings: Settings) -> Incident:
    """Return the incident of an alert; ValueError where it has no id or no time."""
    flat, alert = flattened(child(dict(hit), "_source")), alert_of(hit)
    word = first(flat, "kibana.alert.severity")
    status = first(flat, "kibana.alert.workflow_status")
    said = (first(flat, f"kibana.alert.{it}") for it in ("reason", "rule.description"))
    changes = [_time(flat, TIMESTAMP), *map(utc, texts(flat, STATUS_CHANGED))]
    return Incident(
        external_id=alert.external_id,
        title=alert.title,
        description="\n".join(it for it in said if it),
        severity=alert.severity,
        severity_assumed=(word or "").casefold() not in SEVERITIES,
        raw_severity=word,
        status=STATUSES.get((status or "").casefold(), IncidentStatus.NEW),
        raw_status=status,
        occurred_at=alert.occurred_at,
        changed_at=max(changes),
        source_url=first(flat, "kibana.alert.url") or _link(alert.external_id, flat, settings),
        techniques=union([techniques_of(flat)]),
        entities=union([entities_of(flat)]),
        alerts=(alert,),
    )


def alert_of(hit: Mapping[str, Any]) -> Alert:
    """Return the alert that a document is; ValueError where it has no id or no time."""
    identifier = text(dict(hit), "_id")
    if identifier is None:
        raise ValueError(f"_id is {described(hit.get('_id'))}")
    flat = flattened(child(dict(hit), "_source"))
    happened = first(flat, "kibana.alert.original_time") or first(flat, "kibana.alert.start")
    word = first(flat, "kibana.alert.severity") or ""
    return Alert(
        external_id=identifier,
        title=first(flat, "kibana.alert.rule.name") or "Elastic alert",
        severity=SEVERITIES.get(word.casefold(), Severity.MEDIUM),
        occurred_at=utc(happened) if happened else _time(flat, TIMESTAMP),
    )


def first(flat: Flat, name: str) -> str | None:
    """Return the first text of a member, None where it has none."""
    return next(iter(texts(flat, name)), None)


def _time(flat: Flat, name: str) -> datetime:
    told = first(flat, name)
    if told is None:
        raise ValueError(f"{name} is missing or no text")
    return utc(told)


def _link(identifier: str, flat: Flat, settings: Settings) -> str:
    """Return the alert's page, for a Kibana that does not know its own address."""
    query = {"index": settings.alerts_index, "timestamp": first(flat, TIMESTAMP)}
    name = quote(identifier, safe="")
    return f"{settings.kibana}/app/security/alerts/redirect/{name}?{urlencode(query)}"
