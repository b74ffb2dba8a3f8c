"""From a document of the alerts index to the incident, and to the alert, that it is."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlencode

from tocsin import Alert, Incident, IncidentStatus, Severity
from tocsin_connectors.siem.elastic.fields import find_entities, find_techniques
from tocsin_connectors.siem.elastic.flattening import FlatDocument, flatten_document
from tocsin_connectors.siem.elastic.settings import ElasticSettings
from tocsin_connectors.siem.elastic.words import SEVERITIES, STATUSES
from tocsin_connectors.siem.records import child, describe_value, parse_utc, text, texts, union

TIMESTAMP, STATUS_UPDATED = "@timestamp", "kibana.alert.workflow_status_updated_at"
"""When an alert was made or, by suppression, added to; and when its status last changed."""
BUILDING_BLOCK_TYPE = "kibana.alert.building_block_type"
"""An alert that has one is only made for other rules to look at."""


def build_alert_incident(hit: Mapping[str, Any], settings: ElasticSettings) -> Incident:
    """Return the incident of an alert; ValueError where it has no id or no time."""
    flat, alert = flatten_document(child(dict(hit), "_source")), build_alert(hit)
    word = first_text(flat, "kibana.alert.severity")
    status = first_text(flat, "kibana.alert.workflow_status")
    said = (first_text(flat, f"kibana.alert.{it}") for it in ("reason", "rule.description"))
    changes = [_parse_time(flat, TIMESTAMP), *map(parse_utc, texts(flat, STATUS_UPDATED))]
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
        source_url=first_text(flat, "kibana.alert.url")
        or _build_alert_url(alert.external_id, flat, settings),
        techniques=union([find_techniques(flat)]),
        entities=union([find_entities(flat)]),
        alerts=(alert,),
    )


def build_alert(hit: Mapping[str, Any]) -> Alert:
    """Return the alert that a document is; ValueError where it has no id or no time."""
    identifier = text(dict(hit), "_id")
    if identifier is None:
        raise ValueError(f"_id is {describe_value(hit.get('_id'))}")
    flat = flatten_document(child(dict(hit), "_source"))
    happened = first_text(flat, "kibana.alert.original_time") or first_text(
        flat, "kibana.alert.start"
    )
    word = first_text(flat, "kibana.alert.severity") or ""
    return Alert(
        external_id=identifier,
        title=first_text(flat, "kibana.alert.rule.name") or "Elastic alert",
        severity=SEVERITIES.get(word.casefold(), Severity.MEDIUM),
        occurred_at=parse_utc(happened) if happened else _parse_time(flat, TIMESTAMP),
    )


def first_text(flat: FlatDocument, name: str) -> str | None:
    """Return the first text of a member, None where it has none."""
    return next(iter(texts(flat, name)), None)


def _parse_time(flat: FlatDocument, name: str) -> datetime:
    told = first_text(flat, name)
    if told is None:
        raise ValueError(f"{name} is missing or no text")
    return parse_utc(told)


def _build_alert_url(identifier: str, flat: FlatDocument, settings: ElasticSettings) -> str:
    """Return the alert's page, for a Kibana that does not know its own address."""
    query = {"index": settings.alerts_index, "timestamp": first_text(flat, TIMESTAMP)}
    name = quote(identifier, safe="")
    return f"{settings.kibana}/app/security/alerts/redirect/{name}?{urlencode(query)}"
