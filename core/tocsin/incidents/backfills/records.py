"""Backfills as rows, requested by people or created for lost intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Self

from sqlalchemy import Connection, RowMapping, func, insert, literal_column, or_, select, update

from tocsin.clock import isoformat, isoformat_or_none
from tocsin.errors import TocsinError
from tocsin.identifiers import new_id
from tocsin.incidents.coverage import ReadCounts
from tocsin.model import Window
from tocsin.store import announce
from tocsin.store.tables import backfills

BACKFILLS = "backfills"
"""The topic of backfills that are due."""


class BackfillState(StrEnum):
    """State of a backfill."""

    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class BackfillOrigin(StrEnum):
    """Reason for a backfill."""

    OPERATOR = "operator"
    """Requested by an operator."""
    LOST = "lost"
    """Created for an interval that was lost."""


class BackfillEnded(TocsinError):  # noqa: N818 - a state, not a mistake
    """The backfill is no longer running."""


# A literal, since the databases use a partial index only where its condition is literal
_IS_RUNNING = literal_column("state") == literal_column(f"'{BackfillState.RUNNING}'")


@dataclass(frozen=True, slots=True, kw_only=True)
class Backfill:
    """A running backfill."""

    id: str
    provider: str
    window: Window
    alert: bool
    positions: Mapping[str, Any]
    failures: int


@dataclass(frozen=True, slots=True)
class BackfillProgress:
    """Progress of a backfill by stream."""

    at: dict[str, Mapping[str, Any]]
    """The provider's own positions."""
    done: list[str]
    """The streams that have been read to the end of the window."""

    @classmethod
    def of(cls, backfill: Backfill) -> Self:
        """Return the stored progress of a backfill."""
        stored = backfill.positions
        return cls(dict(stored.get("at", {})), list(stored.get("done", [])))


@dataclass(frozen=True, slots=True)
class BackfillAdvance:
    """Result of one page of a backfill."""

    progress: BackfillProgress
    counts: ReadCounts
    reached: datetime | None
    """The time up to which everything was read; None if the read is not time-based."""


def create_backfill(
    connection: Connection,
    provider: str,
    window: Window,
    *,
    alert: bool,
    origin: BackfillOrigin,
    by: str,
    now: datetime,
) -> dict[str, Any]:
    """Create a backfill for the node that reads the provider, and return its JSON."""
    row: dict[str, Any] = {
        "id": new_id("bkf"),
        "provider": provider,
        "start": window.start,
        "end": window.end,
        "origin": origin,
        "alert": alert,
        "state": BackfillState.RUNNING,
        "positions": {},
        "reached": None,
        **dict.fromkeys(("pages", "records", "new", "changed", "rejected", "failures"), 0),
        "reason": None,
        "due_at": now,
        "created_by": by,
        "created_at": now,
        "updated_at": now,
        "finished_at": None,
    }
    connection.execute(insert(backfills).values(row))
    announce(connection, BACKFILLS)
    return represent_backfill(row)


def load_next_backfill(
    connection: Connection, provider: str, now: datetime, current: datetime | None
) -> Backfill | None:
    """Return the oldest due backfill of a provider, None without any.

    `current` is the time up to which the sync has read the provider, None before its first round.
    A quiet backfill that was created later waits, since it would store new incidents unalerted.
    """
    c = backfills.c
    may_begin = c.alert if current is None else or_(c.alert, c.created_at <= current)
    due = select(backfills).where(_IS_RUNNING, c.provider == provider, c.due_at <= now, may_begin)
    row = connection.execute(due.order_by(backfills.c.id).limit(1)).mappings().first()
    if row is None:
        return None
    return Backfill(
        id=row["id"],
        provider=row["provider"],
        window=Window(row["start"], row["end"]),
        alert=row["alert"],
        positions=row["positions"],
        failures=row["failures"],
    )


def advance_backfill(
    connection: Connection, backfill: Backfill, done: BackfillAdvance, now: datetime
) -> None:
    """Record a stored page; raises `BackfillEnded` if the backfill has ended meanwhile."""
    added = {"pages": 1, **asdict(done.counts)}
    values: dict[str, Any] = {name: backfills.c[name] + count for name, count in added.items()}
    values |= {"positions": asdict(done.progress), "failures": 0, "reason": None, "updated_at": now}
    if done.reached is not None:
        values["reached"] = done.reached
    _update(connection, backfill.id, values)


def postpone_backfill(
    connection: Connection,
    backfill: Backfill,
    reason: str,
    *,
    failures: int,
    due_at: datetime,
    now: datetime,
) -> None:
    """Record a failure and the time of the next attempt; raises `BackfillEnded`."""
    values = {
        "failures": failures,
        "reason": reason,
        "due_at": due_at,
        "updated_at": now,
    }
    _update(connection, backfill.id, values)


def shorten_backfill(
    connection: Connection, backfill: Backfill, end: datetime, now: datetime
) -> None:
    """Move the end of the window back; raises `BackfillEnded` if it has ended meanwhile."""
    _update(connection, backfill.id, {"end": end, "updated_at": now})


def end_backfill(
    connection: Connection,
    backfill_id: str,
    state: BackfillState,
    now: datetime,
    reason: str | None = None,
) -> bool:
    """End a backfill, and return whether it was running."""
    ended = {"state": state, "reason": reason, "updated_at": now, "finished_at": now}
    running = update(backfills).where(backfills.c.id == backfill_id, _IS_RUNNING)
    return bool(connection.execute(running.values(ended)).rowcount)


def _update(connection: Connection, backfill_id: str, values: Mapping[str, Any]) -> None:
    running = update(backfills).where(backfills.c.id == backfill_id, _IS_RUNNING)
    if connection.execute(running.values(dict(values))).rowcount != 1:
        raise BackfillEnded(f"the backfill {backfill_id} is no longer running")


def load_backfill(connection: Connection, backfill_id: str) -> dict[str, Any] | None:
    """Return the JSON of a backfill, None for an unknown ID."""
    query = select(backfills).where(backfills.c.id == backfill_id)
    row = connection.execute(query).mappings().one_or_none()
    return None if row is None else represent_backfill(row)


@dataclass(frozen=True, slots=True)
class BackfillPage:
    """One page of a list, the newest backfill first."""

    backfills: list[dict[str, Any]]
    total: int
    next: str | None
    """The value of `before` for the next page, None on the last page."""


def list_backfills(
    connection: Connection, *, limit: int, provider: str | None = None, before: str | None = None
) -> BackfillPage:
    """Return a page of backfills, the newest first; `before` continues an earlier page."""
    page = select(backfills).order_by(backfills.c.id.desc()).limit(limit + 1)
    count = select(func.count()).select_from(backfills)
    if provider is not None:
        page = page.where(backfills.c.provider == provider)
        count = count.where(backfills.c.provider == provider)
    if before is not None:
        page = page.where(backfills.c.id < before)
    found = connection.execute(page).mappings().all()
    following = found[limit - 1]["id"] if len(found) > limit else None
    total = connection.scalars(count).one()
    return BackfillPage([represent_backfill(row) for row in found[:limit]], total, following)


def represent_backfill(row: RowMapping | Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON of a backfill."""
    names = ("id", "provider", "origin", "alert", "state", "pages", "records", "new", "changed")
    moments = ("created_at", "updated_at", "finished_at", "reached")
    return {
        **{name: row[name] for name in names},
        "rejected": row["rejected"],
        "from": isoformat(row["start"]),
        "to": isoformat(row["end"]),
        "progress": _progress(row),
        "reason": row["reason"],
        "created_by": row["created_by"],
        **{name: isoformat_or_none(row[name]) for name in moments},
    }


def _progress(row: RowMapping | Mapping[str, Any]) -> float | None:
    """Return the progress from 0 to 1; None if the read is not time-based."""
    if row["state"] == BackfillState.COMPLETED:
        return 1.0
    if row["reached"] is None:
        return None
    share: float = (row["reached"] - row["start"]) / (row["end"] - row["start"])
    return round(max(0.0, min(share, 1.0)), 3)
