"""Backfills as rows: asked for by people, or made for what was lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Self

from sqlalchemy import Connection, RowMapping, func, insert, literal_column, or_, select, update

from tocsin.clock import isoformat, isoformat_or_none
from tocsin.errors import TocsinError
from tocsin.events import new_id
from tocsin.incidents.coverage.ledger import ReadCounts
from tocsin.model import Window
from tocsin.store import announce
from tocsin.store.tables import backfills

BACKFILLS = "backfills"
"""The topic of backfills that wait to be done."""


class BackfillState(StrEnum):
    """How a backfill is."""

    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class BackfillOrigin(StrEnum):
    """Why there is a backfill."""

    OPERATOR = "operator"
    """Someone asked for it."""
    LOST = "lost"
    """The stretch could not be read when its time came."""


class BackfillEnded(TocsinError):  # noqa: N818 - a state, not a mistake
    """The backfill does not run any more."""


# Written out, since the databases use a partial index only where they see its condition
_IS_RUNNING = literal_column("state") == literal_column(f"'{BackfillState.RUNNING}'")


@dataclass(frozen=True, slots=True, kw_only=True)
class Backfill:
    """A backfill that is being done."""

    id: str
    provider: str
    window: Window
    alert: bool
    positions: Mapping[str, Any]
    failures: int


@dataclass(frozen=True, slots=True)
class BackfillProgress:
    """How far a backfill is in each stream."""

    at: dict[str, Mapping[str, Any]]
    """The provider's own positions."""
    done: list[str]
    """The streams that were read to the end of the window."""

    @classmethod
    def of(cls, backfill: Backfill) -> Self:
        """Return how far a backfill was when it was last stored."""
        stored = backfill.positions
        return cls(dict(stored.get("at", {})), list(stored.get("done", [])))


@dataclass(frozen=True, slots=True)
class BackfillAdvance:
    """What one page of a backfill came to."""

    progress: BackfillProgress
    counts: ReadCounts
    reached: datetime | None
    """Up to when everything was read; None where what is read does not tell."""


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
    """Store a backfill for the node that reads the provider, and return it as it is shown."""
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
    """Return the oldest backfill of a provider that is due, None where there is none.

    `current` is up to when the provider was read on: a quiet one that was asked for later has to
    wait, or it would bring what is new without an alert. None where it never was.
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
    """Note that a page was stored; raises Ended where the backfill was ended meanwhile."""
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
    """Note why a backfill could not go on, and when it is tried again; raises Ended."""
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
    """Have a backfill end earlier; raises Ended where it was ended meanwhile."""
    _update(connection, backfill.id, {"end": end, "updated_at": now})


def end_backfill(
    connection: Connection,
    backfill_id: str,
    state: BackfillState,
    now: datetime,
    reason: str | None = None,
) -> bool:
    """End a backfill that runs, and return whether it did."""
    ended = {"state": state, "reason": reason, "updated_at": now, "finished_at": now}
    running = update(backfills).where(backfills.c.id == backfill_id, _IS_RUNNING)
    return bool(connection.execute(running.values(ended)).rowcount)


def _update(connection: Connection, backfill_id: str, values: Mapping[str, Any]) -> None:
    running = update(backfills).where(backfills.c.id == backfill_id, _IS_RUNNING)
    if connection.execute(running.values(dict(values))).rowcount != 1:
        raise BackfillEnded(f"the backfill {backfill_id} was ended")


def load_backfill(connection: Connection, backfill_id: str) -> dict[str, Any] | None:
    """Return a backfill as it is shown, None where there is none of this id."""
    query = select(backfills).where(backfills.c.id == backfill_id)
    row = connection.execute(query).mappings().one_or_none()
    return None if row is None else represent_backfill(row)


@dataclass(frozen=True, slots=True)
class BackfillPage:
    """One page of a list, the newest backfill first."""

    backfills: list[dict[str, Any]]
    total: int
    next: str | None
    """What to go on `before` where more follows, else None."""


def list_backfills(
    connection: Connection, *, limit: int, provider: str | None = None, before: str | None = None
) -> BackfillPage:
    """Return the backfills, the newest first; `before` continues an earlier page."""
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
    """Return a backfill as it is shown."""
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
    """Return from 0 to 1 how far it is; None where what is read does not tell by time."""
    if row["state"] == BackfillState.COMPLETED:
        return 1.0
    if row["reached"] is None:
        return None
    share: float = (row["reached"] - row["start"]) / (row["end"] - row["start"])
    return round(max(0.0, min(share, 1.0)), 3)
