"""Mapping of offenses to incidents."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from typing import Any

from tocsin import Alert, Entity, EntityKind, Incident, IncidentStatus, Severity
from tocsin_connectors.siem.qradar.client import CLOSED, PERSISTED, STARTED, UPDATED
from tocsin_connectors.siem.qradar.lookups import MAX_ADDRESSES, OffenseLookups, has_more_addresses
from tocsin_connectors.siem.qradar.values import (
    OFFENSE_TYPES,
    STATUSES,
    parse_severity,
    parse_time,
    text_or_number,
)
from tocsin_connectors.siem.records import (
    EntityRoles,
    children,
    describe_value,
    number,
    parse_entities,
    text,
    texts,
    union,
)

_SUMMARY_PATH = "/console/do/sem/offensesummary?appName=Sem&pageId=OffenseSummary&summaryId="
_RULE_ENGINE = "EventCRE"
"""Log source type of QRadar's own rule engine."""


def build_incident(record: dict[str, Any], lookups: OffenseLookups, console: str) -> Incident:
    """Return the incident of an offense, with the names that are cached.

    Raises ValueError if it has no ID or change time.
    """
    identifier = number(record, "id")
    if identifier is None or identifier < 0:
        raise ValueError(f"id is {describe_value(record.get('id'))}")
    changed_at = _parse_change_time(record)
    severity, raw_severity = _parse_severity(record)
    occurred_at = parse_time(record, STARTED) or changed_at
    roles = _find_roles(record, lookups)
    return Incident(
        external_id=str(identifier),
        external_number=str(identifier),
        title=" ".join((text(record, "description") or "").split()) or f"Offense {identifier}",
        description="\n".join(_describe(record, lookups)),
        severity=severity or Severity.MEDIUM,
        raw_severity=raw_severity,
        severity_assumed=severity is None,
        status=parse_status(record),
        raw_status=text_or_number(record, "status"),
        occurred_at=occurred_at,
        changed_at=changed_at,
        source_url=f"{console}{_SUMMARY_PATH}{identifier}",
        entities=union(
            [_find_source(record, lookups), _find_addresses(record, lookups), _find_senders(record)]
        ),
        sources=roles.sources,
        targets=roles.targets,
        alerts=tuple(
            Alert(
                external_id=f"{identifier}:{number(rule, 'id')}",
                title=lookups.rule(rule) or f"Rule {number(rule, 'id')}",
                severity=severity or Severity.MEDIUM,
                occurred_at=occurred_at,
                rule=lookups.rule(rule),
                record=record,
            )
            for rule in children(record, "rules")
            if number(rule, "id") is not None
        ),
    )


def _parse_change_time(record: dict[str, Any]) -> datetime:
    """Return when an offense last changed; closing it may not count as an update."""
    changed = parse_time(record, PERSISTED) or parse_time(record, UPDATED)
    if changed is None:
        raise ValueError(f"{PERSISTED} is {describe_value(record.get(PERSISTED))}")
    with suppress(ValueError):
        if closed := parse_time(record, CLOSED):
            return max(changed, closed)
    return changed


def _parse_severity(record: dict[str, Any]) -> tuple[Severity | None, str | None]:
    """Return the severity and its source: the magnitude, or else the severity."""
    name = "severity" if record.get("magnitude") is None else "magnitude"
    return parse_severity(number(record, name)), text_or_number(record, name)


def parse_status(record: dict[str, Any]) -> IncidentStatus:
    """Return the status of an offense: assigned ones are active."""
    status = STATUSES.get((text(record, "status") or "").casefold(), IncidentStatus.NEW)
    is_taken = text(record, "assigned_to") or record.get("follow_up") is True
    if status is IncidentStatus.NEW and is_taken:
        return IncidentStatus.ACTIVE
    return status


def _describe(record: dict[str, Any], lookups: OffenseLookups) -> Iterator[str]:
    """Yield the lines of the description, without counters that grow with each event."""
    logs = (text(child, "name") or "" for child in children(record, "log_sources"))
    domain = text_or_number(record, "domain_id")
    source, kind = text(record, "offense_source"), lookups.offense_type(record)
    lines = {
        kind or "Source": source,
        "Categories": ", ".join(texts(record, "categories")),
        "Log sources": ", ".join(filter(None, logs)),
        "Source network": text(record, "source_network"),
        "Destination networks": ", ".join(texts(record, "destination_networks")),
        "Domain": None if domain == "0" else domain,
        "Assigned to": text(record, "assigned_to"),
        "Closed by": text(record, "closing_user"),
        "Closed as": lookups.closing_reason(record),
    }
    yield from (f"{what}: {value}" for what, value in lines.items() if value)
    if has_more_addresses(record):
        yield f"More than {MAX_ADDRESSES} addresses; only the first {MAX_ADDRESSES} are listed"


def _find_roles(record: dict[str, Any], lookups: OffenseLookups) -> EntityRoles:
    """Return the sources and destinations; the type says whether the index is one of them."""
    word = (lookups.offense_type(record) or "").casefold()
    index = tuple(_find_source(record, lookups))
    sources, targets = (
        union(parse_entities(EntityKind.IP, found) for found in addresses)
        for addresses in (lookups.sources(record), lookups.destinations(record))
    )
    if word.startswith(("source", "sender")):
        sources = union([index, sources])
    elif word.startswith(("destination", "recipient")):
        targets = union([index, targets])
    return EntityRoles(sources, targets)


def _find_source(record: dict[str, Any], lookups: OffenseLookups) -> Iterator[Entity]:
    """Yield the entity that an offense is indexed by, if it is one."""
    kind = OFFENSE_TYPES.get((lookups.offense_type(record) or "").casefold())
    source = text(record, "offense_source")
    if kind is not None and source is not None:
        yield from parse_entities(kind, source)


def _find_addresses(record: dict[str, Any], lookups: OffenseLookups) -> Iterator[Entity]:
    for found in lookups.addresses(record):
        yield from parse_entities(EntityKind.IP, found)


def _find_senders(record: dict[str, Any]) -> Iterator[Entity]:
    """Yield the hosts of log sources: QRadar names discovered ones `type @ host`."""
    for source in children(record, "log_sources"):
        _, at, host = (text(source, "name") or "").rpartition(" @ ")
        if at and text(source, "type_name") != _RULE_ENGINE:
            yield from parse_entities(EntityKind.HOST, host)
