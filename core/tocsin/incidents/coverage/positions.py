"""Stream positions: the progress of each stream of each provider."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, case, func, literal, select, update

from tocsin.store import LeaseLost, build_insert
from tocsin.store.tables import Timestamp, stream_positions


class StalePosition(LeaseLost):
    """Another reader has advanced the same position, so this reader's position is stale."""


@dataclass(frozen=True, slots=True)
class StreamKey:
    """One stream of one provider."""

    provider: str
    stream: str

    def __str__(self) -> str:
        return f"{self.provider}: {self.stream}"


@dataclass(frozen=True, slots=True)
class StreamPosition:
    """A provider's own position, None before the first page, and its revision."""

    value: Mapping[str, Any] | None
    revision: int
    first_read_done: bool
    """False until a read has reached the end once, over any number of attempts."""


def load_position(connection: Connection, key: StreamKey) -> StreamPosition:
    """Return the position to continue from."""
    table = stream_positions.c
    row = connection.execute(
        select(table.position, table.revision, table.first_read_done).where(
            table.provider == key.provider, table.stream == key.stream
        )
    ).first()
    if row is None:
        return StreamPosition(None, 0, first_read_done=False)
    return StreamPosition(row.position, row.revision, first_read_done=row.first_read_done)


def advance_position(
    connection: Connection,
    key: StreamKey,
    revision: int,
    position: Mapping[str, Any],
    *,
    covered_until: datetime | None,
    now: datetime,
) -> None:
    """Advance from `revision`; raises `StalePosition` where that is no longer the current one.

    `covered_until` is None for reads that are not time-based; one earlier than the stored one
    changes nothing.
    """
    table = stream_positions
    moved = {"position": dict(position), "revision": revision + 1, "updated_at": now}
    result = connection.execute(
        update(table)
        .where(table.c.provider == key.provider, table.c.stream == key.stream)
        .where(table.c.revision == revision)
        .values(**moved, covered_until=_choose_later(covered_until))
    )
    if result.rowcount == 0 and revision == 0:
        first = {"provider": key.provider, "stream": key.stream, "first_read_done": False, **moved}
        first["covered_until"] = covered_until
        statement = build_insert(connection, table).values(first)
        result = connection.execute(statement.on_conflict_do_nothing())
    if result.rowcount != 1:
        raise StalePosition(f"{key}: another node advanced its position")


def _choose_later(moment: datetime | None) -> ColumnElement[datetime | None]:
    known = stream_positions.c.covered_until
    if moment is None:
        return known
    new = literal(moment, Timestamp)
    return case((known > new, known), else_=new)


def load_covered_until(connection: Connection, provider: str) -> datetime | None:
    """Return the time up to which all time-based streams were read, None without any."""
    table = stream_positions.c
    ends = select(func.min(table.covered_until)).where(table.provider == provider)
    earliest: datetime | None = connection.execute(ends).scalar_one()
    return earliest


def load_read_until(connection: Connection) -> dict[str, datetime]:
    """Return the time up to which all time-based streams were read, by provider."""
    table = stream_positions.c
    ends = select(table.provider, func.min(table.covered_until)).group_by(table.provider)
    return {provider: end for provider, end in connection.execute(ends) if end is not None}


def mark_first_read_done(connection: Connection, key: StreamKey, now: datetime) -> None:
    """Record that the stream was read to its end once, whatever that returned."""
    row = {"provider": key.provider, "stream": key.stream, "revision": 0, "updated_at": now}
    statement = build_insert(connection, stream_positions)
    connection.execute(
        statement.values(**row, position=None, first_read_done=True).on_conflict_do_update(
            index_elements=["provider", "stream"], set_={"first_read_done": True}
        )
    )
