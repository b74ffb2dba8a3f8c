"""From an incident of Defender XDR, with its alerts, to what it is here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from tocsin import Alert, Incident, IncidentStatus, Severity
from tocsin_connectors.siem.defender.evidence import find_entities
from tocsin_connectors.siem.microsoft.words import parse_severity, parse_time
from tocsin_connectors.siem.records import children, describe_value, text, texts, union
from tocsin_connectors.siem.techniques import filter_techniques

# https://learn.microsoft.com/graph/api/resources/security-incident
STATUSES: Mapping[str, IncidentStatus] = {
    "active": IncidentStatus.NEW,
    "inprogress": IncidentStatus.ACTIVE,
    "awaitingaction": IncidentStatus.ACTIVE,
    "resolved": IncidentStatus.CLOSED,
    "redirected": IncidentStatus.CLOSED,
}
_UNKNOWN = "unknown"


def build_incident(given: Mapping[str, Any]) -> Incident:
    """Return the incident that a record is, with those of its alerts that it has.

    Raises ValueError where a record has no id or no time of its last update.
    """
    record = dict(given)
    name = text(record, "id")
    if name is None:
        raise ValueError(f"id is {describe_value(record.get('id'))}")
    changed_at = parse_time(record, "lastUpdateDateTime")
    if changed_at is None:
        raise ValueError(
            f"lastUpdateDateTime is {describe_value(record.get('lastUpdateDateTime'))}"
        )
    alerts = children(record, "alerts")
    raw_severity, raw_status = text(record, "severity"), text(record, "status")
    severity = parse_severity(raw_severity)
    return Incident(
        external_id=name,
        external_number=name,
        title=text(record, "displayName") or f"Incident {name}",
        description="\n".join(_describe(record)),
        severity=severity or Severity.MEDIUM,
        raw_severity=raw_severity,
        severity_assumed=severity is None,
        status=STATUSES.get((raw_status or "").casefold(), IncidentStatus.NEW),
        raw_status=raw_status,
        merged_into=text(record, "redirectIncidentId"),
        occurred_at=_find_start(record, alerts) or changed_at,
        changed_at=changed_at,
        source_url=text(record, "incidentWebUrl"),
        techniques=union(map(_find_techniques, alerts)),
        entities=union(find_entities(it.get("evidence")) for it in alerts),
        alerts=union([_build_alerts(alerts)]),
    )


def _find_start(record: dict[str, Any], alerts: Iterable[dict[str, Any]]) -> datetime | None:
    """Return when the first thing was seen; when the incident was made, where that is not told."""
    seen = (_parse_optional_time(alert, "firstActivityDateTime") for alert in alerts)
    return min((it for it in seen if it), default=None) or parse_time(record, "createdDateTime")


def _build_alerts(records: Iterable[dict[str, Any]]) -> Iterator[Alert]:
    for record in records:
        name = text(record, "id")
        at = _parse_optional_time(record, "firstActivityDateTime") or _parse_optional_time(
            record, "createdDateTime"
        )
        if name and at:
            yield Alert(
                external_id=name,
                title=text(record, "title") or name,
                severity=parse_severity(text(record, "severity")) or Severity.MEDIUM,
                occurred_at=at,
            )


def _find_techniques(alert: dict[str, Any]) -> Iterator[str]:
    yield from filter_techniques(texts(alert, "mitreTechniques"))


def _describe(record: dict[str, Any]) -> Iterator[str]:
    """Yield the lines that say what was found and what was decided about it."""
    if words := text(record, "description"):
        yield words
    said = (text(record, member) for member in ("classification", "determination"))
    decided = [it for it in said if it and it.casefold() != _UNKNOWN]
    if decided:
        yield f"Classified as {', '.join(decided)}"


def _parse_optional_time(record: dict[str, Any], member: str) -> datetime | None:
    try:
        return parse_time(record, member)
    except ValueError:
        return None
