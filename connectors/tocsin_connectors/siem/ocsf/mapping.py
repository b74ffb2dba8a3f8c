"""Mapping of OCSF findings to incidents."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from tocsin import Alert, Incident, IncidentStatus, Severity
from tocsin_connectors.siem.ocsf.entities import find_entities, find_roles, find_techniques
from tocsin_connectors.siem.records import (
    child,
    children,
    find_tactics,
    number,
    parse_utc,
    text,
    union,
)

_SECURITY_FINDING, _DETECTION_FINDING, _INCIDENT_FINDING = 2001, 2004, 2005
_TACTIC_FIELDS = ("attacks.tactic.uid", "attacks.tactic.name", "attacks.tactics.uid")
_CLOSE = 3  # the value of activity_id

_SEVERITIES = {
    1: Severity.INFORMATIONAL,
    2: Severity.LOW,
    3: Severity.MEDIUM,
    4: Severity.HIGH,
    5: Severity.CRITICAL,
    6: Severity.CRITICAL,
}
_SEVERITY_WORDS = {severity.value.casefold(): severity for severity in Severity} | {
    "fatal": Severity.CRITICAL
}
_STATUSES = {
    _DETECTION_FINDING: {
        1: IncidentStatus.NEW,
        2: IncidentStatus.ACTIVE,
        3: IncidentStatus.CLOSED,  # Suppressed
        4: IncidentStatus.CLOSED,  # Resolved
        5: IncidentStatus.CLOSED,  # Archived
        6: IncidentStatus.CLOSED,  # Deleted
    },
    _SECURITY_FINDING: {  # until OCSF 1.1; its status is `state_id`
        1: IncidentStatus.NEW,
        2: IncidentStatus.ACTIVE,
        3: IncidentStatus.CLOSED,  # Suppressed
        4: IncidentStatus.CLOSED,  # Resolved
    },
    _INCIDENT_FINDING: {
        1: IncidentStatus.NEW,
        2: IncidentStatus.ACTIVE,
        3: IncidentStatus.ACTIVE,  # On Hold
        4: IncidentStatus.CLOSED,  # Resolved
        5: IncidentStatus.CLOSED,
    },
}
"""Meaning of status_id by class: each class has its own numbering."""
CLASSES = frozenset(_STATUSES)
_STATUS_WORDS = {
    "new": IncidentStatus.NEW,
    "in progress": IncidentStatus.ACTIVE,
    "on hold": IncidentStatus.ACTIVE,
} | dict.fromkeys(
    ("suppressed", "resolved", "archived", "closed", "deleted"), IncidentStatus.CLOSED
)
_UNITS = ((1e11, 1), (1e14, 1e3), (1e17, 1e6), (1e20, 1e9))
"""Upper limits of times in seconds, milli-, micro- and nanoseconds, valid until 5138."""


def build_incident(record: dict[str, Any]) -> Incident:
    """Return the finding's incident. Raises ValueError if an identity or a time is missing."""
    details = _list_details(record)
    severity, occurred_at = _parse_severity(record), _parse_occurrence(record, details)
    external_id = _get_external_id(record, details)
    first = details[0] if details else {}
    title = text(first, "title") or text(record, "message") or f"OCSF finding {external_id}"
    roles = find_roles(record)
    finding = Alert(
        external_id=external_id,
        title=title,
        severity=severity or Severity.MEDIUM,
        occurred_at=occurred_at,
        rule=_get_rule(first) or _get_rule(record),
        record=record,
    )
    return Incident(
        external_id=external_id,
        title=title,
        description=_describe(record, first),
        severity=severity or Severity.MEDIUM,
        raw_severity=_get_raw(record, "severity"),
        severity_assumed=severity is None,
        status=_parse_status(record),
        raw_status=_get_raw(record, "state") or _get_raw(record, "status"),
        occurred_at=occurred_at,
        changed_at=_parse_change_time(record, details),
        source_url=_get_source_url(record, first),
        techniques=union([find_techniques(record, details)]),
        tactics=union(find_tactics(holder, *_TACTIC_FIELDS) for holder in [*details, record]),
        entities=union([find_entities(record)]),
        sources=roles.sources,
        targets=roles.targets,
        alerts=tuple(_build_alerts(record, finding)),
    )


def _list_details(record: dict[str, Any]) -> list[dict[str, Any]]:
    members = ("finding_info", "finding_info_list", "finding")
    return [detail for member in members for detail in children(record, member)]


def _get_external_id(record: dict[str, Any], details: list[dict[str, Any]]) -> str:
    own = text(child(record, "finding_info"), "uid") or text(child(record, "finding"), "uid")
    if own := own or text(child(record, "metadata"), "uid"):
        return own
    for detail in details:
        if uid := text(detail, "uid"):
            return f"incident-of:{uid}"  # never the id of that finding itself
    raise ValueError("finding_info.uid and metadata.uid are missing")


def _parse_severity(record: dict[str, Any]) -> Severity | None:
    known = _SEVERITIES.get(number(record, "severity_id") or 0)
    return known or _SEVERITY_WORDS.get((text(record, "severity") or "").casefold())


def _parse_status(record: dict[str, Any]) -> IncidentStatus:
    kind, key = number(record, "class_uid") or 0, "status"
    if kind == _SECURITY_FINDING and ("state_id" in record or "state" in record):
        key = "state"
    of_class = _STATUSES.get(kind, {})
    by_word = _STATUS_WORDS.get((text(record, key) or "").casefold())
    is_closing = number(record, "activity_id") == _CLOSE
    by_activity = IncidentStatus.CLOSED if is_closing else IncidentStatus.NEW
    return of_class.get(number(record, f"{key}_id") or 0) or by_word or by_activity


def _get_raw(record: dict[str, Any], key: str) -> str | None:
    value = number(record, f"{key}_id")
    return text(record, key) or (None if value is None else str(value))


def _describe(record: dict[str, Any], first: dict[str, Any]) -> str:
    return text(first, "desc") or text(record, "desc") or text(record, "message") or ""


def _get_source_url(record: dict[str, Any], first: dict[str, Any]) -> str | None:
    url = text(record, "src_url") or text(first, "src_url")
    return url if url and url.startswith(("https://", "http://")) else None


def _parse_occurrence(record: dict[str, Any], details: list[dict[str, Any]]) -> datetime:
    starts = [parse_time(record, "start_time")]
    starts += [
        parse_time(item, key) for item in details for key in ("first_seen_time", "created_time")
    ]
    if known := [moment for moment in starts if moment]:
        return min(known)
    if moment := parse_time(record, "time"):
        return moment
    raise ValueError("time is missing or not a time")


def _parse_change_time(record: dict[str, Any], details: list[dict[str, Any]]) -> datetime | None:
    times = [
        parse_time(record, "time"),
        *(parse_time(detail, "modified_time") for detail in details),
    ]
    return max((moment for moment in times if moment), default=None)


def parse_time(record: dict[str, Any], key: str) -> datetime | None:
    """Return the time at `key` or at its `_dt` counterpart, or None if neither is valid."""
    for name in (f"{key}_dt", key):
        value = record.get(name)
        try:
            if isinstance(value, str):
                return parse_utc(value)
            if isinstance(value, int | float) and not isinstance(value, bool):
                return _parse_number(value)
        except ValueError:
            continue
    return None


def _parse_number(value: float) -> datetime:
    for limit, unit in _UNITS:
        if 0 < value < limit:
            return datetime.fromtimestamp(value / unit, UTC)
    raise ValueError(f"{value} is not a time")


def _get_rule(holder: dict[str, Any]) -> str | None:
    """Return the name of the rule or other analytic, or else its ID.

    https://schema.ocsf.io/objects/finding_info. Until OCSF 1.1, findings have it themselves.
    """
    analytic = child(holder, "analytic")
    return text(analytic, "name") or text(analytic, "uid")


def _build_alerts(record: dict[str, Any], finding: Alert) -> Iterator[Alert]:
    """Yield the findings that an incident finding lists. Any other finding is an alert itself."""
    if number(record, "class_uid") != _INCIDENT_FINDING:
        yield finding
        return
    for detail in children(record, "finding_info_list"):
        if uid := text(detail, "uid"):
            yield Alert(
                external_id=uid,
                title=text(detail, "title") or f"OCSF finding {uid}",
                severity=finding.severity,
                occurred_at=parse_time(detail, "first_seen_time")
                or parse_time(detail, "created_time")
                or finding.occurred_at,
                rule=_get_rule(detail),
                record=detail,
            )
