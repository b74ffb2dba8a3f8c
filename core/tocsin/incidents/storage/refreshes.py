"""Schedule of the refreshes of new incidents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, delete, select, update

from tocsin.incidents.storage.merge import IncidentChange
from tocsin.model import Received
from tocsin.store import BulkStatement, build_insert
from tocsin.store.tables import rereads


@dataclass(frozen=True, slots=True)
class DueRefresh:
    """An incident that is due for a refresh; `step` counts the earlier ones."""

    external_id: str
    step: int
    created_at: datetime


def schedule_refreshes(
    connection: Connection,
    provider: str,
    external_ids: Sequence[str],
    after: timedelta,
    now: datetime,
) -> None:
    """Schedule the first refresh of new incidents."""
    rows = ((provider, external_id, 0, now, now + after) for external_id in external_ids)
    _SCHEDULE.run(connection, rows)


_SCHEDULE = BulkStatement(
    lambda connection: build_insert(connection, rereads).on_conflict_do_nothing(),
    ("provider", "external_id", "step", "created_at", "due_at"),
)


def find_incidents_to_refresh(
    batch: Sequence[Received],
    changes: Sequence[IncidentChange],
    ages: Sequence[timedelta],
    now: datetime,
    *,
    past: bool,
) -> list[str]:
    """Return the incidents that are new, or whose details are missing."""
    is_young = _is_younger_than(ages[-1], now)
    new = (change for change in changes if change.stored is None)
    young = [change.incident.external_id for change in new if not past or is_young(change)]
    optional = {one.external_id for each in batch for one in each.incidents if one.only_if_stored}
    left_out = optional - {change.incident.external_id for change in changes}
    incomplete = (name for each in batch for name in each.incomplete if name not in left_out)
    return list(dict.fromkeys((*young, *incomplete)))


def _is_younger_than(age: timedelta, now: datetime) -> Callable[[IncidentChange], bool]:
    """Return a test for incidents that may still grow: a backfill brings old ones as well."""
    return lambda change: (change.incident.changed_at or change.incident.occurred_at) > now - age


def load_due_refreshes(
    connection: Connection, provider: str, most: int, now: datetime
) -> list[DueRefresh]:
    """Return the refreshes that are due, the longest overdue first."""
    columns = rereads.c.external_id, rereads.c.step, rereads.c.created_at
    due = select(*columns).where(rereads.c.provider == provider, rereads.c.due_at <= now)
    rows = connection.execute(due.order_by(rereads.c.due_at).limit(most))
    return [DueRefresh(*row) for row in rows]


def postpone_refresh(
    connection: Connection, provider: str, refresh: DueRefresh, *, due_at: datetime
) -> None:
    """Move a refresh that failed to a later time."""
    one = (rereads.c.provider == provider, rereads.c.external_id == refresh.external_id)
    connection.execute(update(rereads).where(*one).values(due_at=due_at))


def complete_refresh(
    connection: Connection, provider: str, refresh: DueRefresh, after: Sequence[timedelta]
) -> None:
    """Schedule the next refresh of an incident, or remove it after the last one.

    `after` holds the ages of the incident at which it is refreshed.
    """
    step = refresh.step + 1
    one = (rereads.c.provider == provider, rereads.c.external_id == refresh.external_id)
    if step >= len(after):
        connection.execute(delete(rereads).where(*one))
        return
    due_at = refresh.created_at + after[step]
    connection.execute(update(rereads).where(*one).values(step=step, due_at=due_at))
