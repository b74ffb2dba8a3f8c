"""Mapping of Threat Center cases and alerts to incidents.

https://developers.exabeam.com/exabeam/reference/threat-center-search-cases
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from tocsin import Alert, Incident, IncidentStatus, Severity, parse_tactics
from tocsin_connectors.siem.entity_fields import FieldContent, FieldTable
from tocsin_connectors.siem.exabeam.client import strip_markup
from tocsin_connectors.siem.records import (
    children,
    describe_value,
    filter_techniques,
    parse_utc,
    text,
    texts,
    union,
)

RecordKind = Literal["cases", "alerts"]
SEVERITIES: Mapping[str, Severity] = {
    "informational": Severity.INFORMATIONAL,
    "low": Severity.LOW,
    "medium": Severity.MEDIUM,
    "high": Severity.HIGH,
    "critical": Severity.CRITICAL,
}
NEW_STAGE, CLOSED_STAGE = "NEW", "CLOSED"
_IDENTIFIERS = {"cases": "caseId", "alerts": "alertId"}
_CREATED = {
    "cases": ("caseCreationTimestamp",),
    "alerts": ("alertCreationTimestamp", "creationTimestamp"),
}
_CHANGED = ("lastModifiedTimestamp", "lastUpdateTimestamp")
_ENDPOINT_HOSTS = ("host", "hostName", "hostname")
ENTITY_TABLE = FieldTable(
    sources={
        FieldContent.ADDRESS: ("srcIps", "srcEndpoints.ip"),
        FieldContent.HOST: ("srcHosts", *(f"srcEndpoints.{name}" for name in _ENDPOINT_HOSTS)),
    },
    targets={
        FieldContent.ADDRESS: ("destIps", "destEndpoints.ip"),
        FieldContent.HOST: ("destHosts", *(f"destEndpoints.{name}" for name in _ENDPOINT_HOSTS)),
    },
    others={FieldContent.USER: ("users",), FieldContent.HOST: ("endpoints",)},
)
_MAX_ENTITIES = 200
_MAX_RULES = 50
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS = (
    (10**14, timedelta(microseconds=1)),
    (10**11, timedelta(milliseconds=1)),
    (0, timedelta(seconds=1)),
)
"""Least number that counts microseconds, milliseconds or seconds since 1970."""


def parse_time(record: dict[str, Any], *names: str) -> datetime | None:
    """Return the time at the first member that has one: a number since 1970, or ISO 8601.

    Raises ValueError if it is not a time.
    """
    for name in names:
        value = record.get(name)
        if isinstance(value, str) and value:
            return parse_utc(value)
        if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
            unit = next(unit for least, unit in _UNITS if value >= least)
            try:
                return _EPOCH + value * unit
            except OverflowError as error:
                raise ValueError(f"the time {value} is out of range") from error
    return None


def parse_times(record: dict[str, Any], kind: RecordKind) -> tuple[datetime, datetime]:
    """Return when a record was created and when it last changed.

    Raises ValueError if it was created at no valid time.
    """
    names = _CREATED[kind]
    created_at = parse_time(record, *names)
    if created_at is None:
        raise ValueError(f"{names[0]} is {describe_value(record.get(names[0]))}")
    return created_at, max(created_at, parse_time(record, *_CHANGED) or created_at)


def parse_stage(stage: str | None) -> IncidentStatus:
    """Return the status of a stage. Operators name the stages between the first and the last."""
    match (stage or NEW_STAGE).upper():
        case "NEW":
            return IncidentStatus.NEW
        case "CLOSED":
            return IncidentStatus.CLOSED
    return IncidentStatus.ACTIVE


def build_incident(given: Mapping[str, Any], kind: RecordKind, web_url: str | None) -> Incident:
    """Return the incident of a case or an alert. Raises ValueError if it has no ID or time."""
    record = dict(given)
    name = text(record, _IDENTIFIERS[kind])
    if name is None:
        missing = _IDENTIFIERS[kind]
        raise ValueError(f"{missing} is {describe_value(record.get(missing))}")
    created_at, changed_at = parse_times(record, kind)
    raw_severity, stage = text(record, "priority"), text(record, "stage")
    severity = SEVERITIES.get((raw_severity or "").casefold())
    rules = children(record, "rules")[:_MAX_RULES]
    occurred_at = _find_start(record, rules) or created_at
    title = text(record, "alertName") or f"{kind.removesuffix('s').capitalize()} {name}"
    mitres = children(record, "mitres")
    tactics = (word for one in mitres for word in _list_words(one, "tacticKey", "tactic"))
    techniques = (word for one in mitres for word in _list_words(one, "techniqueKey"))
    found = ENTITY_TABLE.find(record, _MAX_ENTITIES)
    return Incident(
        external_id=name,
        external_number=_parse_number(record),
        title=title,
        description="\n".join(_describe(record, rules)),
        severity=severity or Severity.MEDIUM,
        raw_severity=raw_severity,
        severity_assumed=severity is None,
        status=parse_stage(stage),
        raw_status=stage,
        occurred_at=min(occurred_at, created_at),
        changed_at=changed_at,
        source_url=f"{web_url}/{name}" if web_url else None,
        techniques=union([filter_techniques(techniques)]),
        tactics=union([parse_tactics(tactics)]),
        entities=found.entities,
        sources=found.roles.sources,
        targets=found.roles.targets,
        alerts=union([_build_alerts(rules, severity or Severity.MEDIUM, occurred_at)])
        or (
            Alert(
                external_id=name,
                title=title,
                severity=severity or Severity.MEDIUM,
                occurred_at=occurred_at,
                record=record,
            ),
        ),
    )


def _parse_number(record: dict[str, Any]) -> str | None:
    value = record.get("caseNumber")
    return str(value) if isinstance(value, int | str) and value not in ("", True, False) else None


def _list_words(mitre: dict[str, Any], *names: str) -> Iterator[str]:
    yield from (word for name in names if (word := text(mitre, name)))


def _find_start(record: dict[str, Any], rules: Iterable[dict[str, Any]]) -> datetime | None:
    """Return the time of the first log that a rule matched."""
    times = (_parse_optional_time(one) for one in (record, *rules))
    return min(filter(None, times), default=None)


def _parse_optional_time(record: dict[str, Any]) -> datetime | None:
    with suppress(ValueError):
        return parse_time(record, "approxLogTime")
    return None


def _build_alerts(
    rules: Iterable[dict[str, Any]], severity: Severity, occurred_at: datetime
) -> Iterator[Alert]:
    """Yield the rules that matched, as alerts."""
    for rule in rules:
        if identifier := text(rule, "ruleId"):
            word, name = text(rule, "ruleSeverity") or "", text(rule, "ruleName") or identifier
            yield Alert(
                external_id=identifier,
                title=name,
                severity=SEVERITIES.get(word.casefold(), severity),
                occurred_at=_parse_optional_time(rule) or occurred_at,
                rule=name,
                record=rule,
            )


def _describe(record: dict[str, Any], rules: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield the lines of the description: summary, reasons of rules, reason of closure."""
    for name in ("alertDescriptionRt", "alertDescription", "threatSummary"):
        if description := text(record, name):
            yield strip_markup(description).strip()
            break
    for rule in rules:
        if reason := text(rule, "ruleReason"):
            yield f"{text(rule, 'ruleName') or 'Rule'}: {strip_markup(reason).strip()}"
    closed = (text(record, name) for name in ("closedReason", "supportingReason"))
    if reasons := [reason for reason in closed if reason]:
        yield f"Closed: {', '.join(reasons)}"
    if tags := texts(record, "tags"):
        yield f"Tags: {', '.join(tags)}"
