"""From an incident of Defender XDR, with its alerts, to what it is here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from tocsin import Alert, Incident, IncidentStatus, Severity
from tocsin_connectors.siem.defender.evidence import named_by
from tocsin_connectors.siem.microsoft.words import severity_of, time_at
from tocsin_connectors.siem.records import children, described, text, texts, union
from tocsin_connectors.siem.techniques import techniques_among

# https://learn.microsoft.com/graph/api/resources/security-incident
STATUSES: Mapping[str, IncidentStatus] = {
    "active": IncidentStatus.NEW,
    "inprogress": IncidentStatus.ACTIVE,
    "awaitingaction": IncidentStatus.ACTIVE,
    "resolved": IncidentStatus.CLOSED,
    "redirected": IncidentStatus.CLOSED,
}
_UNDECIDED = "unknown"


def incident_of(given: Mapping[str, Any]) -> Incident:
    """Return the incident that a record is, with those of its alerts that it has.

    Raises ValueError where a record has no id or no time of its last update.
    """
    record = dict(given)
    name = text(record, "id")
    if name is None:
        raise ValueError(f"id is {described(record.get('id'))}")
    changed_at = time_at(record, "lastUpdateDateTime")
    if changed_at is None:
        raise ValueError(f"lastUpdateDateTime is {described(record.get('lastUpdateDateTime'))}")
    alerts = children(record, "alerts")
    raw_severity, raw_status = text(record, "severity"), text(record, "status")
    severity = severity_of(raw_severity)
    return Incident(
        external_id=name,
        external_number=name,
        title=text(record, "displayName") or f"Incident {name}",
        description="\n".join(_description(record)),
        severity=severity or Severity.MEDIUM,
        raw_severity=raw_severity,
        severity_assumed=severity is None,
        status=STATUSES.get((raw_status or "").casefold(), IncidentStatus.NEW),
        raw_status=raw_status,
        merged_into=text(record, "redirectIncidentId"),
        occurred_at=_began(record, alerts) or changed_at,
        changed_at=changed_at,
        source_url=text(record, "incidentWebUrl"),
        techniques=union(map(_techniques, alerts)),
        entities=union(named_by(it.get("evidence")) for it in alerts),
        alerts=union([_alerts(alerts)]),
    )


def _began(record: dict[str, Any], alerts: Iterable[dict[str, Any]]) -> datetime | None:
    """Return when the first thing was seen; when the incident was made, where that is not told."""
    seen = (_time_if_any(alert, "firstActivityDateTime") for alert in alerts)
    return min((it for it in seen if it), default=None) or time_at(record, "createdDateTime")


def _alerts(records: Iterable[dict[str, Any]]) -> Iterator[Alert]:
    for record in records:
        name = text(record, "id")
        at = _time_if_any(record, "firstActivityDateTime") or _time_if_any(
            record, "createdDateTime"
        )
        if name and at:
            yield Alert(
                external_id=name,
                title=text(record, "title") or name,
                severity=severity_of(text(record, "severity")) or Severity.MEDIUM,
                occurred_at=at,
            )


def _techniques(alert: dict[str, Any]) -> Iterator[str]:
    yield from techniques_among(texts(alert, "mitreTechniques"))


def _description(record: dict[str, Any]) -> Iterator[str]:
    """Yield the lines that say what was found and what was decided about it."""
    if words := text(record, "description"):
        yield words
    said = (text(record, member) for member in ("classification", "determination"))
    decided = [it for it in said if it and it.casefold() != _UNDECIDED]
    if decided:
        yield f"Classified as {', '.join(decided)}"


def _time_if_any(record: dict[str, Any], member: str) -> datetime | None:
    try:
        return time_at(record, member)
    except ValueError:
        return None
