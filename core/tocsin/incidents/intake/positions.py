"""Positions of the intake: which accepted pushes to each provider are stored."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    and_,
    case,
    literal,
    select,
    update,
)

from tocsin.hookspecs import IntakePosition
from tocsin.incidents.coverage import StalePosition
from tocsin.store import Lease, LeasedTable, build_insert
from tocsin.store.tables import Timestamp, intake_positions

_NO_STREAM = ""  # of a provider whose pushes were not read yet
_leased = LeasedTable(intake_positions, intake_positions.c.provider)
_t = intake_positions.c


@dataclass(frozen=True, slots=True)
class AcceptedMark:
    """The last push to a provider that a node has accepted."""

    provider: str
    position: IntakePosition
    since: datetime
    """When the first push since the last mark was received."""


@dataclass(frozen=True, slots=True)
class IntakeBacklog:
    """Pushes to a provider that were accepted and are not stored yet."""

    provider: str
    stored: int
    """The number of the last stored push in the stream."""
    accepted: int
    """The number of the last push that is known to be accepted."""
    since: datetime
    """When the oldest of them was received, or a little earlier."""


def acquire_intake_lease(
    connection: Connection, provider: str, node: int, now: datetime
) -> Lease | None:
    """Return the lease of a provider's pushes, None while another present node holds it."""
    first = {"provider": provider, "stream": _NO_STREAM, "stored": 0, "accepted": 0}
    new = build_insert(connection, intake_positions).values(**first, updated_at=now)
    connection.execute(new.on_conflict_do_nothing())
    query = select(_t.node, _t.lease, _t.leased_until).where(_t.provider == provider)
    row = connection.execute(query).one()
    if not _leased.is_left(connection, row, node, now):
        return None
    token = _leased.acquire(connection, row, provider, node, now)
    return None if token is None else Lease(_leased, provider, token)


def load_intake_position(connection: Connection, provider: str) -> IntakePosition | None:
    """Return the position up to which a provider's pushes are stored, None before the first."""
    query = select(_t.stream, _t.stored).where(_t.provider == provider, _t.stream != _NO_STREAM)
    row = connection.execute(query).one_or_none()
    return None if row is None else IntakePosition(row.stream, row.stored)


def load_last_accepted(connection: Connection, provider: str) -> int:
    """Return the number of the last push to a provider that is known to be accepted."""
    query = select(_t.accepted).where(_t.provider == provider)
    return connection.execute(query).scalar_one_or_none() or 0


def advance_intake_position(
    connection: Connection,
    provider: str,
    before: IntakePosition | None,
    after: IntakePosition,
    now: datetime,
    *,
    received_at: datetime | None = None,
) -> None:
    """Advance a position; raises StalePosition where it is no longer the stored one.

    `received_at` is when the last push before the new position was received, if there is one.
    """
    known = before or IntakePosition(_NO_STREAM, 0)
    accepted: int | ColumnElement[int] = after.sequence
    waiting_since: ColumnElement[datetime | None] | None = None
    if known.stream == after.stream:
        is_behind = _t.accepted > after.sequence
        accepted = case((is_behind, _t.accepted), else_=literal(after.sequence, BigInteger))
        oldest = _t.waiting_since if received_at is None else literal(received_at, Timestamp)
        waiting_since = case((is_behind, oldest), else_=None)
    moved = (
        update(intake_positions)
        .where(_t.provider == provider, _t.stream == known.stream, _t.stored == known.sequence)
        .values(
            stream=after.stream,
            stored=after.sequence,
            accepted=accepted,
            waiting_since=waiting_since,
            updated_at=now,
        )
    )
    if connection.execute(moved).rowcount != 1:
        raise StalePosition(f"{provider}: another node stored pushes from the intake")


def note_accepted(
    connection: Connection, marks: Iterable[AcceptedMark], now: datetime
) -> list[AcceptedMark]:
    """Record accepted pushes; return the marks to record later, of streams that are not read yet.

    Marks of a stream that was lost are dropped: its end was recorded when the next one was read.
    """
    early = []
    for mark in marks:
        stream = connection.scalar(select(_t.stream).where(_t.provider == mark.provider))
        if stream is None or stream < mark.position.stream:
            early.append(mark)
        elif stream == mark.position.stream:
            _note(connection, mark, now)
    return early


def _note(connection: Connection, mark: AcceptedMark, now: datetime) -> None:
    sequence = mark.position.sequence
    begins = and_(_t.stored < sequence, _t.waiting_since.is_(None))
    connection.execute(
        update(intake_positions)
        .where(_t.provider == mark.provider, _t.stream == mark.position.stream)
        .where(_t.accepted < sequence)
        .values(
            accepted=sequence,
            waiting_since=case((begins, literal(mark.since, Timestamp)), else_=_t.waiting_since),
            updated_at=now,
        )
    )


def list_backlogs(connection: Connection) -> list[IntakeBacklog]:
    """Return what is accepted and not stored, by provider."""
    query = select(_t.provider, _t.stored, _t.accepted, _t.waiting_since).where(
        _t.accepted > _t.stored, _t.waiting_since.is_not(None)
    )
    return [IntakeBacklog(*row) for row in connection.execute(query.order_by(_t.provider))]
