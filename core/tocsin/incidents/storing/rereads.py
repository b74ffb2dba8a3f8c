"""Which incidents are to be read again, since what belongs to them may come later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, delete, select, update

from tocsin.store.conflicts import build_insert
from tocsin.store.tables import rereads


@dataclass(frozen=True, slots=True)
class DueRefresh:
    """An incident that is due to be read again; `step` counts how often it was."""

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
    """Have these new incidents read again `after` now."""
    rows = [
        {
            "provider": provider,
            "external_id": external_id,
            "step": 0,
            "created_at": now,
            "due_at": now + after,
        }
        for external_id in external_ids
    ]
    if rows:
        connection.execute(build_insert(connection, rereads).on_conflict_do_nothing(), rows)


def load_due_refreshes(
    connection: Connection, provider: str, most: int, now: datetime
) -> list[DueRefresh]:
    """Return what is due, the longest due first."""
    columns = rereads.c.external_id, rereads.c.step, rereads.c.created_at
    due = select(*columns).where(rereads.c.provider == provider, rereads.c.due_at <= now)
    rows = connection.execute(due.order_by(rereads.c.due_at).limit(most))
    return [DueRefresh(*row) for row in rows]


def postpone_refresh(
    connection: Connection, provider: str, reread: DueRefresh, *, due_at: datetime
) -> None:
    """Have an incident that could not be read again read later."""
    one = (rereads.c.provider == provider, rereads.c.external_id == reread.external_id)
    connection.execute(update(rereads).where(*one).values(due_at=due_at))


def complete_refresh(
    connection: Connection, provider: str, reread: DueRefresh, after: Sequence[timedelta]
) -> None:
    """Note that an incident was read again: it is due next as `after` has it, or done with.

    Each of `after` counts from when the incident was new.
    """
    step = reread.step + 1
    one = (rereads.c.provider == provider, rereads.c.external_id == reread.external_id)
    if step >= len(after):
        connection.execute(delete(rereads).where(*one))
        return
    due_at = reread.created_at + after[step]
    connection.execute(update(rereads).where(*one).values(step=step, due_at=due_at))
