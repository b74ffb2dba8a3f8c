"""From an alert of Falcon to the incident that it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any
from urllib.parse import quote

from tocsin import Alert, Incident, IncidentStatus, Severity
from tocsin_connectors.siem.crowdstrike.entities import find_entities
from tocsin_connectors.siem.crowdstrike.fql import UPDATED
from tocsin_connectors.siem.crowdstrike.words import STATUSES, parse_severity
from tocsin_connectors.siem.records import (
    children,
    describe_value,
    number,
    parse_utc,
    text,
    texts,
    union,
)
from tocsin_connectors.siem.techniques import filter_techniques

_START_FIELDS = ("first_timestamp", "start_time", "timestamp", "created_timestamp")
"""When it began, by the first of them that an alert has: the products differ."""


def build_incident(given: Mapping[str, Any], console: str) -> Incident:
    """Return the incident that an alert is; `console` is where alerts are shown.

    Raises ValueError where it has no composite id or no time of its last update.
    """
    record = dict(given)
    name, updated = text(record, "composite_id"), text(record, UPDATED)
    if name is None:
        raise ValueError(f"composite_id is {describe_value(record.get('composite_id'))}")
    if updated is None:
        raise ValueError(f"{UPDATED} is {describe_value(record.get(UPDATED))}")
    changed_at = parse_utc(updated)
    title = text(record, "display_name") or text(record, "name") or f"Alert {name}"
    word, rank = text(record, "severity_name"), number(record, "severity")
    severity, status = parse_severity(word, rank), text(record, "status")
    occurred_at = _parse_start(record) or changed_at
    return Incident(
        external_id=name,
        title=title,
        description="\n".join(_describe(record)),
        severity=severity or Severity.MEDIUM,
        raw_severity=word or (None if rank is None else str(rank)),
        severity_assumed=severity is None,
        status=STATUSES.get((status or "").casefold(), IncidentStatus.NEW),
        raw_status=status,
        occurred_at=occurred_at,
        changed_at=changed_at,
        source_url=_build_url(record, name, console),
        techniques=union([_find_techniques(record)]),
        entities=union([find_entities(record)]),
        alerts=(
            Alert(
                external_id=name,
                title=title,
                severity=severity or Severity.MEDIUM,
                occurred_at=occurred_at,
            ),
        ),
    )


def _parse_start(record: dict[str, Any]) -> datetime | None:
    for member in _START_FIELDS:
        with suppress(ValueError):
            if said := text(record, member):
                return parse_utc(said)
    return None


def _describe(record: dict[str, Any]) -> Iterator[str]:
    """Yield the lines that say what was found, and what became of it."""
    if words := text(record, "description"):
        yield words
    for what, member in (
        ("Command line", "cmdline"),
        ("What Falcon did", "pattern_disposition_description"),
        ("Resolved as", "resolution"),
        ("Group", "aggregate_id"),
    ):
        if told := text(record, member):
            yield f"{what}: {told}"
    if record.get("show_in_ui") is False:
        yield "Hidden in the console"


def _find_techniques(record: dict[str, Any]) -> Iterator[str]:
    for holder in (record, *children(record, "mitre_attack")):
        yield from filter_techniques(texts(holder, "technique_id"))  # some are CrowdStrike's own


def _build_url(record: dict[str, Any], name: str, console: str) -> str:
    """Return the page of an alert, which the alert itself names as a rule."""
    told = text(record, "falcon_host_link")
    if told and told.startswith("https://"):
        return told
    return f"{console}/unified-detections/{quote(name, safe=':')}"
