"""Mapping of Security Analytics alerts and their findings to incidents."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from tocsin import Alert, Entity, Incident, IncidentStatus, Severity, Window, parse_tactics
from tocsin_connectors.siem.indices.documents import decode_object
from tocsin_connectors.siem.indices.ecs_fields import find_ecs_techniques, find_log_entities
from tocsin_connectors.siem.opensearch.pagination import to_milliseconds
from tocsin_connectors.siem.records import (
    EntityRoles,
    children,
    describe_value,
    filter_techniques,
    find_document_roles,
    find_tactics,
    number,
    parse_utc,
    text,
    texts,
    union,
)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SEPARATOR = "@"
_CHANGE_TOLERANCE = timedelta(seconds=1)
# The levels of a trigger, https://docs.opensearch.org/latest/observing-your-data/alerting/triggers/
SEVERITIES = {
    "1": Severity.CRITICAL,
    "2": Severity.HIGH,
    "3": Severity.MEDIUM,
    "4": Severity.LOW,
    "5": Severity.INFORMATIONAL,
}
STATUSES = {
    "active": IncidentStatus.NEW,
    "error": IncidentStatus.NEW,
    "acknowledged": IncidentStatus.ACTIVE,
    "completed": IncidentStatus.CLOSED,
    "deleted": IncidentStatus.CLOSED,
}
_CHANGE_TIMES = ("last_notification_time", "acknowledged_time", "end_time")


class AlertReference(NamedTuple):
    """Reference to an alert by detector and time, since the API has no lookup by ID."""

    alert: str
    detector: str
    start: int
    """In milliseconds since 1970."""

    def __str__(self) -> str:
        """Return the `external_id` of the incident."""
        return _SEPARATOR.join(map(str, self))

    @classmethod
    def parse(cls, external_id: str) -> AlertReference | None:
        """Parse an `external_id`, or return None if it is invalid."""
        with suppress(ValueError):
            alert, detector, start = external_id.rsplit(_SEPARATOR, 2)
            return cls(alert, detector, int(start))
        return None


def build_incident(alert: dict[str, Any], detector: str, detector_name: str | None) -> Incident:
    """Return the incident of an alert of a detector.

    Raises ValueError if the alert has no ID or start time.
    """
    identifier, began_at = text(alert, "id"), parse_time(alert.get("start_time"))
    if identifier is None:
        raise ValueError(f"id is {describe_value(alert.get('id'))}")
    if began_at is None:
        raise ValueError(f"start_time is not a time: {alert.get('start_time')!r:.60}")
    severity, raw = parse_severity(alert)
    state = text(alert, "state")
    return Incident(
        external_id=str(AlertReference(identifier, detector, to_milliseconds(began_at))),
        external_number=identifier,
        title=text(alert, "trigger_name") or "OpenSearch alert",
        description=_description(alert, detector_name),
        severity=severity or Severity.MEDIUM,
        raw_severity=raw,
        severity_assumed=severity is None,
        status=STATUSES.get((state or "").casefold(), IncidentStatus.NEW),
        raw_status=state or _number_text(alert.get("state")),
        occurred_at=began_at,
        changed_at=parse_change_time(alert),
    )


def parse_severity(alert: dict[str, Any]) -> tuple[Severity | None, str | None]:
    """Return the severity of an alert, or None if unknown, and the trigger's own value."""
    raw = text(alert, "severity") or _number_text(alert.get("severity"))
    return SEVERITIES.get(raw or ""), raw


def parse_change_time(alert: dict[str, Any]) -> datetime | None:
    """Return when an alert last began, notified, was acknowledged or ended; None without a time."""
    return max(_parse_times(alert), default=None)


def has_changed_in(alert: dict[str, Any], window: Window) -> bool:
    """Return whether an alert changed in a window after it began."""
    began_at, last = parse_time(alert.get("start_time")), parse_change_time(alert)
    if began_at is None or last is None:
        return False
    return last in window and last - began_at > _CHANGE_TOLERANCE


def list_finding_ids(alert: dict[str, Any]) -> list[str]:
    """Return the IDs of the findings that raised an alert, if they can be requested."""
    found = alert.get("finding_ids")
    names = found if isinstance(found, list) else [found]
    return [name for name in names if isinstance(name, str) and name and "," not in name]


def parse_time(value: Any) -> datetime | None:
    """Parse a time in text or milliseconds, or return None if it is invalid."""
    with suppress(ValueError, OverflowError):
        if isinstance(value, str):
            return parse_utc(value)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return _EPOCH + timedelta(milliseconds=value)
    return None


def _parse_times(alert: dict[str, Any]) -> Iterator[datetime]:
    for name in ("start_time", *_CHANGE_TIMES):
        if found := parse_time(alert.get(name)):
            yield found


def _number_text(value: Any) -> str | None:
    return str(found) if (found := number({"": value}, "")) is not None else None


def _description(alert: dict[str, Any], detector_name: str | None) -> str:
    error = text(alert, "error_message") or ""
    return "\n".join(filter(None, (error, detector_name and f"Detector: {detector_name}")))


MAX_ENTITIES = 200
"""Maximum number of entities per document."""
RULE_LEVELS = {severity.value.casefold(): severity for severity in Severity}
"""Levels of Sigma rules, which are among the tags of matched rules."""
_TECHNIQUE_TAG = re.compile(r"attack\.(t\d{4}(?:\.\d{3})?)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class OpenSearchFinding:
    """Parsed content of a finding."""

    alert: Alert | None
    severity: Severity | None
    techniques: tuple[str, ...]
    tactics: tuple[str, ...]
    entities: tuple[Entity, ...]
    roles: EntityRoles


def parse_finding(record: dict[str, Any]) -> OpenSearchFinding:
    """Parse a finding, as far as possible."""
    queries = children(record, "queries")
    tags = [tag for query in queries for tag in texts(query, "tags")]
    levels = [RULE_LEVELS[tag.casefold()] for tag in tags if tag.casefold() in RULE_LEVELS]
    severity = max(levels, key=lambda level: level.rank, default=None)
    documents = list(read_documents(record))
    found = [find_log_entities(document, MAX_ENTITIES) for document in documents]
    techniques = (filter_techniques(find_ecs_techniques(document)) for document in documents)
    named = (match[1].upper() for tag in tags if (match := _TECHNIQUE_TAG.fullmatch(tag)))
    return OpenSearchFinding(
        alert=_build_alert(record, queries, severity),
        severity=severity,
        techniques=union([named, *techniques]),
        tactics=union(
            [
                parse_tactics(tags),
                *(find_tactics(document, "threat.tactic.id") for document in documents),
            ]
        ),
        entities=union(item.entities for item in found),
        roles=EntityRoles.merge(map(find_document_roles, documents)),
    )


def read_documents(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the documents of a finding, which are JSON strings."""
    for place in children(record, "document_list"):
        if document := decode_object(place.get("document")):
            yield document


def _build_alert(
    record: dict[str, Any], queries: list[dict[str, Any]], severity: Severity | None
) -> Alert | None:
    identifier, occurred_at = text(record, "id"), parse_time(record.get("timestamp"))
    if identifier is None or occurred_at is None:
        return None
    rules = [name for query in queries if (name := text(query, "name"))]
    rule = rules[0] if rules and len(queries) == 1 else None
    return Alert(
        external_id=identifier,
        title=", ".join(rules)[:200] or "OpenSearch finding",
        severity=severity or Severity.MEDIUM,
        occurred_at=occurred_at,
        rule=rule,
        record=record,
    )


def attach_findings(incident: Incident, records: Iterable[dict[str, Any]]) -> Incident:
    """Add findings to an incident.

    The severity of the trigger has precedence over the highest level of the matched rules.
    """
    findings = [parse_finding(record) for record in records]
    levels = [finding.severity for finding in findings if finding.severity]
    if incident.raw_severity is None and levels:
        highest = max(levels, key=lambda level: level.rank)
        incident = replace(
            incident,
            severity=highest,
            raw_severity=highest.value.casefold(),
            severity_assumed=False,
        )
    roles = EntityRoles.merge(finding.roles for finding in findings)
    return replace(
        incident,
        sources=roles.sources,
        targets=roles.targets,
        techniques=union(finding.techniques for finding in findings),
        tactics=union(finding.tactics for finding in findings),
        entities=union(finding.entities for finding in findings),
        alerts=tuple(finding.alert for finding in findings if finding.alert),
    )
