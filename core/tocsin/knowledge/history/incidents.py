"""Stored incidents by number, by entity and by time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import Connection, RowMapping, Select, bindparam, func, select

from tocsin.knowledge.latest_rows import (
    HIGHEST,
    find_highest_number,
    latest_row_conditions,
)
from tocsin.knowledge.sql_lists import encode_list, select_list
from tocsin.model import (
    Alert,
    Entity,
    EntityKind,
    IncidentRecord,
    IncidentStatus,
    Marking,
    NetworkFlow,
    Severity,
    Window,
    find_marking,
)
from tocsin.store import force_index_scans
from tocsin.store.tables import incident_alerts, incident_entities, incidents

MAX_ALERTS = 50
"""Number of latest alerts returned with an incident."""
MAX_SCANNED = 500
"""Number of latest incidents of an entity that are searched."""
Markings = Mapping[str, Marking]
_COLUMNS = (
    "number",
    "provider",
    "external_id",
    "title",
    "description",
    "severity",
    "severity_assumed",
    "status",
    "occurred_at",
    "updated_at",
    "alert_count",
    "source_url",
    "merged_into",
    "techniques",
    "tactics",
)
_i, _e, _a = incidents.c, incident_entities.c, incident_alerts.c
_newest_first = (_i.occurred_at.desc(), _i.number.desc())


def load_incidents(
    connection: Connection, numbers: Sequence[int], markings: Markings
) -> list[IncidentRecord]:
    """Return the incidents with these numbers, in this order; missing ones are left out."""
    wanted = [number for number in dict.fromkeys(numbers) if 0 < number <= HIGHEST]
    found = connection.execute(_NUMBERED, {"numbers": wanted}).mappings()
    rows = {row["number"]: row for row in found}
    known = list(rows)
    involved = _load_entities(connection, known)
    alerts = _load_alerts(connection, known)
    return [
        _record(rows[number], involved.get(number, ()), alerts.get(number, ()), markings)
        for number in wanted
        if number in rows
    ]


@force_index_scans
def find_incidents(
    connection: Connection,
    about: Sequence[Entity],
    markings: Markings,
    *,
    window: Window | None = None,
    provider: str | None = None,
    limit: int = 50,
) -> list[IncidentRecord]:
    """Return the latest incidents that involve any of these entities, the newest first.

    The latest 500 incidents of each entity up to the window's end are searched, so older matches
    of an entity in very many incidents may be missing.
    """
    highest = (
        HIGHEST if window is None else find_highest_number(connection, window.end, window.start)
    )
    statement = _about(connection.dialect.name, window is not None, provider is not None)
    values: dict[str, Any] = {
        "wanted": encode_list(about),
        "highest": highest,
        "looked_at": max(limit, MAX_SCANNED),
        "limit": limit,
        "provider": provider,
    }
    if window is not None:
        values |= {"since": window.start, "until": window.end}
    numbers = connection.execute(statement, values).scalars().all()
    return load_incidents(connection, numbers, markings)


def list_incidents_within(
    connection: Connection,
    window: Window,
    markings: Markings,
    *,
    provider: str | None = None,
    min_severity: Severity = Severity.INFORMATIONAL,
    limit: int = 50,
) -> list[IncidentRecord]:
    """Return the incidents that occurred in a window, the newest first."""
    query = select(_i.number).where(_i.occurred_at >= window.start, _i.occurred_at < window.end)
    if provider is not None:
        query = query.where(_i.provider == provider)
    if min_severity.rank > 0:
        wanted = [severity for severity in Severity if severity.rank >= min_severity.rank]
        query = query.where(_i.severity.in_(wanted))
    ordered = query.order_by(*_newest_first).limit(limit)
    return load_incidents(connection, connection.execute(ordered).scalars().all(), markings)


def _record(
    row: RowMapping,
    involved: Sequence[tuple[Entity, str | None]],
    alerts: Iterable[Alert],
    markings: Markings,
) -> IncidentRecord:
    return IncidentRecord(
        **{
            **row,
            "severity": Severity(row["severity"]),
            "status": IncidentStatus(row["status"]),
            "techniques": tuple(row["techniques"]),
            "tactics": tuple(row["tactics"]),
        },
        entities=tuple(entity for entity, _ in involved),
        sources=tuple(entity for entity, role in involved if role in ("source", "both")),
        targets=tuple(entity for entity, role in involved if role in ("target", "both")),
        alerts=tuple(alerts),
        marking=find_marking(row["provider"], markings),
    )


def _load_entities(
    connection: Connection, numbers: Sequence[int]
) -> dict[int, list[tuple[Entity, str | None]]]:
    """Return the entities of each incident, with their roles."""
    found: dict[int, list[tuple[Entity, str | None]]] = {}
    for number, kind, value, role in connection.execute(_ENTITIES, {"numbers": numbers}):
        found.setdefault(number, []).append((Entity(EntityKind(kind), value), role))
    return found


def _load_alerts(connection: Connection, numbers: Sequence[int]) -> dict[int, list[Alert]]:
    """Return the latest alerts of each incident, the earliest first."""
    found: dict[int, list[Alert]] = {}
    for row in connection.execute(_ALERTS, {"numbers": numbers}):
        alert = Alert(
            external_id=row.external_id,
            title=row.title,
            severity=Severity(row.severity),
            occurred_at=row.occurred_at,
            rule=row.rule,
            flow=row.flow and NetworkFlow(**row.flow),
        )
        found.setdefault(row.incident_number, []).append(alert)
    return found


_numbers: Any = bindparam("numbers", expanding=True)
_NUMBERED = select(*(_i[name] for name in _COLUMNS)).where(_i.number.in_(_numbers))
_ENTITIES = (
    select(_e.incident_number, _e.kind, _e.value, _e.role)
    .where(_e.incident_number.in_(_numbers))
    .order_by(_e.incident_number, _e.kind, _e.value)
)
_latest = func.row_number().over(
    partition_by=_a.incident_number, order_by=(_a.occurred_at.desc(), _a.external_id.desc())
)
_ALERT_COLUMNS = tuple(column for column in _a if column is not _a.record)
_ranked = (
    select(*_ALERT_COLUMNS, _latest.label("place"))
    .where(_a.incident_number.in_(_numbers))
    .subquery()
)
_r = _ranked.c
_ALERTS = (
    select(*(_r[column.name] for column in _ALERT_COLUMNS))
    .where(_r.place <= MAX_ALERTS)
    .order_by(_r.incident_number, _r.place.desc())
)
_within = (
    _i.occurred_at >= bindparam("since", type_=_i.occurred_at.type),
    _i.occurred_at < bindparam("until", type_=_i.occurred_at.type),
)


@cache
def _about(dialect: str, timed: bool, provided: bool) -> Select[Any]:
    wanted = select_list(dialect, "wanted")
    newest = latest_row_conditions(wanted, bindparam("looked_at"), bindparam("highest"))
    numbers = select(_e.incident_number).where(*newest).distinct().cte("found")
    query = select(_i.number).join(numbers, numbers.c.incident_number == _i.number)
    query = query.where(*_within) if timed else query
    query = query.where(_i.provider == bindparam("provider")) if provided else query
    return query.order_by(*_newest_first).limit(bindparam("limit"))
