"""Planned closures as rows, with only the latest one for each incident."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, delete, func, literal_column, select, update

from tocsin.clock import isoformat, isoformat_or_none
from tocsin.model import IncidentStatus, RemoteResolution, Vocabulary
from tocsin.store import build_insert, clean_text
from tocsin.store.tables import incidents, siem_closures

_REASON_LIMIT = 1_000


class ClosureState(Vocabulary):
    """State of a closure."""

    PENDING = "pending"
    WRITTEN = "written"
    FAILED = "failed"


_c = siem_closures.c
# A literal, since the databases use a partial index only if they see its condition
_IS_PENDING = literal_column("state") == literal_column(f"'{ClosureState.PENDING}'")


@dataclass(frozen=True, slots=True)
class Closure:
    """A closure that this node claimed; its due time identifies the holder."""

    incident_number: int
    external_id: str
    failures: int
    due_at: datetime


def plan_closure(
    connection: Connection,
    resolution: RemoteResolution,
    providers: Collection[str],
    now: datetime,
) -> None:
    """Plan to close an open incident of one of the providers; a planned closure is replaced."""
    i = incidents.c
    query = select(i.provider, i.external_id).where(
        i.number == resolution.incident_number, i.status != IncidentStatus.CLOSED
    )
    found = connection.execute(query).one_or_none()
    if found is None or found.provider not in providers:
        return
    values = {
        "provider": found.provider,
        "external_id": found.external_id,
        "destination": resolution.destination,
        "ticket": resolution.reason,
        "state": ClosureState.PENDING,
        "failures": 0,
        "reason": None,
        "due_at": now,
        "created_at": now,
        "finished_at": None,
    }
    statement = build_insert(connection, siem_closures)
    statement = statement.values(incident_number=resolution.incident_number, **values)
    connection.execute(
        statement.on_conflict_do_update(index_elements=["incident_number"], set_=values)
    )


def cancel_closure(connection: Connection, number: int) -> None:
    """Remove the closure of an incident if it is not written yet: its ticket was reopened."""
    connection.execute(delete(siem_closures).where(_c.incident_number == number, _IS_PENDING))


def has_due_closure(connection: Connection, provider: str, now: datetime) -> bool:
    """Return whether a closure of a provider is due."""
    due = select(_c.incident_number).where(_IS_PENDING, _c.provider == provider, _c.due_at <= now)
    return connection.execute(due.limit(1)).first() is not None


def claim_closure(
    connection: Connection, provider: str, now: datetime, until: datetime
) -> Closure | None:
    """Claim the closure that has been due longest; None if none is. It is due again at `until`."""
    query = (
        select(_c.incident_number, _c.external_id, _c.failures)
        .where(_IS_PENDING, _c.provider == provider, _c.due_at <= now)
        .order_by(_c.due_at)
        .limit(1)
        .with_for_update(skip_locked=True)
    )
    row = connection.execute(query).first()
    if row is None:
        return None
    is_it = _c.incident_number == row.incident_number
    connection.execute(update(siem_closures).where(is_it).values(due_at=until))
    return Closure(row.incident_number, row.external_id, row.failures, until)


def settle_closure(connection: Connection, /, held: Closure, now: datetime, **values: Any) -> bool:
    """Store the result of an attempt, and return whether the caller still held the closure."""
    if "reason" in values:
        values["reason"] = clean_text(values["reason"], _REASON_LIMIT)
    if values.get("state", ClosureState.PENDING) is not ClosureState.PENDING:
        values["finished_at"] = now
    is_held = (_c.incident_number == held.incident_number, _c.due_at == held.due_at, _IS_PENDING)
    done = connection.execute(update(siem_closures).where(*is_held).values(**values))
    return bool(done.rowcount)


def load_closure(connection: Connection, number: int) -> dict[str, Any] | None:
    """Return the JSON of the latest closure of an incident, None if there is none."""
    query = select(siem_closures).where(_c.incident_number == number)
    row = connection.execute(query).mappings().one_or_none()
    if row is None:
        return None
    shown = {name: row[name] for name in ("destination", "ticket", "state", "failures", "reason")}
    moments = {"finished_at": isoformat_or_none(row["finished_at"])}
    return shown | {"created_at": isoformat(row["created_at"])} | moments


def count_closures(connection: Connection, since: datetime, until: datetime) -> Mapping[str, int]:
    """Return the number of closures that were planned in a period, by state."""
    query = (
        select(_c.state, func.count())
        .where(_c.created_at > since, _c.created_at <= until)
        .group_by(_c.state)
    )
    counts = {state.value: 0 for state in ClosureState}
    return counts | dict(map(tuple, connection.execute(query)))
