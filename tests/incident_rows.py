"""Incident rows, as a sync stores them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, insert, select, update

from tocsin.incidents import (
    Author,
    LabelKind,
    TriageUpdate,
    add_comment,
    lock_incident,
    update_triage,
)
from tocsin.incidents.documents import refresh_documents
from tocsin.model import DispositionSource, IncidentDisposition
from tocsin.store.statements import INCIDENT_CHANGE, INCIDENT_NUMBER, allot_numbers
from tocsin.store.tables import coverage, incident_entities, incidents, quarantine

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def add_incidents(
    connection: Connection,
    count: int = 1,
    *,
    now: datetime = NOW,
    entities: Sequence[tuple[str, ...]] = (),
    alerts: int = 0,
    **values: Any,
) -> list[int]:
    """Add incidents and return their numbers; `values` are columns that differ from the usual.

    Entities are kind and value, and a role if they have one.
    """
    numbers = list(allot_numbers(connection, INCIDENT_NUMBER, count))
    changes = allot_numbers(connection, INCIDENT_CHANGE, count)
    page = _coverage(connection, now)
    values["alert_count"] = alerts
    rows = [
        _usual(number, change, page, now) | values
        for number, change in zip(numbers, changes, strict=True)
    ]
    connection.execute(insert(incidents), rows)
    for number in numbers:
        for kind, value, *role in entities:
            names = {"kind": kind, "value": value, "role": role[0] if role else None}
            row = {"incident_number": number, **names}
            connection.execute(insert(incident_entities).values(row))
    refresh_documents(connection, numbers)
    return numbers


def change_incident(connection: Connection, number: int, *, now: datetime, **values: Any) -> None:
    """Change an incident, as a later version of it would."""
    [change] = allot_numbers(connection, INCIDENT_CHANGE, 1)
    connection.execute(
        update(incidents)
        .where(incidents.c.number == number)
        .values(**values, change=change, updated_at=now)
    )
    refresh_documents(connection, [number])


def triage_incident(connection: Connection, number: int, *, now: datetime, text: str) -> None:
    """Triage an incident in every way, with this text in all members that take one."""
    author = Author(text, f"admin:{text}", DispositionSource.PERSON)
    labels = {LabelKind.TAG: ["tag", text], LabelKind.WATCHER: [text]}
    change = TriageUpdate(
        assignee=text,
        acknowledged=True,
        disposition=IncidentDisposition.FALSE_POSITIVE,
        reason=f"as {text} said",
        added=labels,
    )
    lock_incident(connection, number)
    update_triage(connection, number, change, author, now, public_url="")
    add_comment(connection, number, f"ask {text}", author, now)


def _coverage(connection: Connection, now: datetime) -> int:
    found = connection.scalar(select(coverage.c.id).limit(1))
    if found is not None:
        return int(found)
    words = dict.fromkeys(("provider", "stream", "source", "unit", "outcome"), "sensors")
    counts = dict.fromkeys(("start", "end", "pages", "records", "new", "changed", "rejected"), 0)
    row = {**words, **counts, "past": False, "started_at": now, "finished_at": now}
    return int(
        connection.execute(insert(coverage).values(row).returning(coverage.c.id)).scalar_one()
    )


def _usual(number: int, change: int, page: int, now: datetime) -> dict[str, Any]:
    return {
        "number": number,
        "provider": "sensors",
        "external_id": f"external-{number}",
        "external_number": str(1000 + number),
        "title": f"Incident {number}",
        "description": "What was seen.",
        "severity": "High",
        "raw_severity": "3",
        "severity_assumed": False,
        "status": "New",
        "raw_status": "open",
        "merged_into": None,
        "source_url": f"https://siem.example/{number}",
        "techniques": ["T1059.001"],
        "occurred_at": now,
        "source_changed_at": None,
        "created_at": now,
        "updated_at": now,
        "change": change,
        "alert_outcome": "alerted",
        "coverage_id": page,
    }


def add_quarantined(
    connection: Connection, provider: str, rejected_at: datetime, count: int = 1, **values: Any
) -> None:
    """Add records that could not be parsed, of a source without time."""
    row = {"provider": provider, "stream": "push", "source": "push", "location": "whole request"}
    row |= {"reason": "not JSON", "content": b"{", "created_at": rejected_at, **values}
    connection.execute(insert(quarantine), [row] * count)
