"""From a detection to the incident that it is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from tocsin import Alert, Incident, IncidentStatus, Severity
from tocsin_connectors.siem.records import child, children, describe_value, parse_utc, text, union
from tocsin_connectors.siem.secops.udm import find_entities
from tocsin_connectors.siem.secops.words import UNSPECIFIED, parse_severity, parse_status
from tocsin_connectors.siem.techniques import find_techniques_in_text


def build_incident(given: Mapping[str, Any]) -> Incident:
    """Return the incident that a detection is; ValueError where it has no id or no time."""
    record = dict(given)
    name = text(record, "id")
    if name is None:
        raise ValueError(f"id is {describe_value(record.get('id'))}")
    created_at, changed_at = parse_times(record)
    rule = next(iter(children(record, "detection")), {})
    feedback = child(record, "feedbackSummary")
    word, status = _select_severity(rule, feedback), text(feedback, "status")
    severity = parse_severity(word)
    title = text(rule, "ruleName") or f"Detection {name}"
    occurred_at = _parse_start(record) or created_at
    return Incident(
        external_id=name,
        title=title,
        description="\n".join(_describe(rule)),
        severity=severity or Severity.MEDIUM,
        raw_severity=word,
        severity_assumed=severity is None,
        status=parse_status(status) or IncidentStatus.NEW,
        raw_status=status,
        occurred_at=occurred_at,
        changed_at=changed_at,
        source_url=_get_link(rule),
        techniques=union([_find_techniques(rule)]),
        entities=union(find_entities(event) for event in _iterate_events(record)),
        alerts=(
            Alert(
                external_id=name,
                title=title,
                severity=severity or Severity.MEDIUM,
                occurred_at=occurred_at,
            ),
        ),
    )


def parse_times(record: dict[str, Any]) -> tuple[datetime, datetime]:
    """Return when a detection was created, and when it last changed.

    Raises ValueError where it does not say when it was created. `detectionTime` is neither: it is
    the end of what the rule looked at, hours before a rule that runs once a day.
    """
    created = text(record, "createdTime")
    if created is None:
        raise ValueError(f"createdTime is {describe_value(record.get('createdTime'))}")
    created_at = parse_utc(created)
    feedback = child(record, "feedbackSummary")
    later = (_parse_time(record, "lastUpdatedTime"), _parse_time(feedback, "createTime"))
    return created_at, max([created_at, *(it for it in later if it)])


def _parse_time(record: dict[str, Any], member: str) -> datetime | None:
    with suppress(ValueError):
        if said := text(record, member):
            return parse_utc(said)
    return None


def _parse_start(record: dict[str, Any]) -> datetime | None:
    return _parse_time(child(record, "timeWindow"), "startTime") or _parse_time(
        record, "detectionTime"
    )


def _select_severity(rule: dict[str, Any], feedback: dict[str, Any]) -> str | None:
    """Return the word for how bad it is: an analyst's, else the rule's."""
    labels = children(rule, "ruleLabels") + children(rule, "outcomes")
    said = (text(it, "value") for it in labels if (text(it, "key") or "").casefold() == "severity")
    words = (text(feedback, "priority"), text(rule, "severity"), *said)
    return next((it for it in words if it and it.casefold() not in UNSPECIFIED), None)


def _describe(rule: dict[str, Any]) -> Iterator[str]:
    """Yield the lines that say what was found, and what the rule has compared."""
    if words := text(rule, "description") or text(rule, "summary"):
        yield words
    for it in children(rule, "detectionFields"):
        if (key := text(it, "key")) and (value := text(it, "value")):
            yield f"{key}: {value}"


def _get_link(rule: dict[str, Any]) -> str | None:
    told = text(rule, "urlBackToProduct")
    return told if told and told.startswith("https://") else None


def _find_techniques(rule: dict[str, Any]) -> Iterator[str]:
    """Yield the ATT&CK ids of a rule: in its labels, and in what it says of the attack."""
    for it in children(rule, "ruleLabels"):
        if re.search("mitre|technique", text(it, "key") or "", re.IGNORECASE):
            yield from find_techniques_in_text(text(it, "value") or "")
    for it in children(child(rule, "attackDetails"), "techniques"):
        yield from find_techniques_in_text(text(it, "subtechniqueId") or text(it, "id") or "")


def _iterate_events(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for element in children(record, "collectionElements"):
        for reference in children(element, "references"):
            yield from children(reference, "event")
            yield from ({"about": it} for it in children(child(reference, "entity"), "entity"))
