"""Leases on sessions: one node at a time runs a session."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, Select, case, func, literal, select

from tocsin.investigations.sessions import ACTIVE_STATUSES, INVESTIGATIONS
from tocsin.model import SessionStatus
from tocsin.store import Lease, LeasedTable, LeaseLost, announce, find_absent_nodes
from tocsin.store.tables import sessions

_s = sessions.c
_is_under_way = _s.status.in_(ACTIVE_STATUSES)


class RunLeaseLost(LeaseLost):
    """Another node runs the session now, or the session was cancelled."""


_leased = LeasedTable(sessions, _s.id, RunLeaseLost)


@dataclass(frozen=True, slots=True)
class RunLease(Lease):
    """The right to run a session while the token is the stored one."""

    attempt: int
    """How many nodes have claimed this run, including this one."""

    @property
    def session_id(self) -> str:
        """The session that is run."""
        return self.key


def has_active_sessions(connection: Connection) -> bool:
    """Return whether there may be a session to claim."""
    return connection.execute(select(_s.id).where(_is_under_way).limit(1)).first() is not None


def claim_runs(connection: Connection, node: int, most: int, now: datetime) -> list[RunLease]:
    """Claim at most `most` sessions: queued ones, and those whose node is gone.

    Owners with the fewest active sessions come first, each with the oldest session.
    """
    waiting = connection.execute(_fair_order()).all()
    gone = _find_absent_nodes(connection, waiting, node)
    free = [row for row in waiting if _is_free(row, gone, now)]
    taken = (_acquire(connection, row, node, now) for row in free[:most])
    return [lease for lease in taken if lease is not None]


def _fair_order() -> Select[Any]:
    """Return the query of active sessions, in the order in which they are claimed.

    Running sessions come first among their owner's, and so delay the owner's queued ones.
    """
    runs_first = case((_s.status == SessionStatus.RUNNING, 0), else_=1)
    turn = func.row_number().over(
        partition_by=_s.created_by, order_by=(runs_first, _s.asked_at, _s.id)
    )
    columns = (_s.id, _s.status, _s.node, _s.lease, _s.leased_until)
    return select(*columns).where(_is_under_way).order_by(turn, _s.asked_at, _s.id)


def _find_absent_nodes(connection: Connection, waiting: Iterable[Row[Any]], node: int) -> set[int]:
    others = {row.node for row in waiting if row.node not in (None, node)}
    return set(find_absent_nodes(connection, sorted(others)))


def _is_free(row: Row[Any], gone: set[int], now: datetime) -> bool:
    if row.status == SessionStatus.QUEUED or row.node in gone:
        return True
    return _leased.is_free(row, now)


def _acquire(connection: Connection, row: Row[Any], node: int, now: datetime) -> RunLease | None:
    """Return the lease, None if another node was faster."""
    values = {
        "status": SessionStatus.RUNNING.value,
        "attempts": _s.attempts + 1,
        "started_at": func.coalesce(_s.started_at, literal(now, _s.started_at.type)),
        "updated_at": now,
    }
    unchanged = _s.status == row.status
    token = _leased.acquire(connection, row, row.id, node, now, unchanged, **values)
    if token is None:
        return None
    attempts = select(_s.attempts).where(_s.id == row.id)
    return RunLease(_leased, row.id, token, connection.scalars(attempts).one())


def renew_leases(
    connection: Connection, held: Mapping[RunLease, Mapping[str, Any]], now: datetime
) -> list[RunLease]:
    """Renew leases, store the progress of each run, and return the leases that are lost."""
    return [
        lease
        for lease, progress in held.items()
        if not lease.renew(connection, now, progress=dict(progress), updated_at=now)
    ]


def release_leases(connection: Connection, leases: Sequence[RunLease]) -> None:
    """Release leases for another node to claim at once; lost leases are ignored.

    A released run does not count as an attempt: the session is not the cause.
    """
    values = {"status": SessionStatus.QUEUED.value, "attempts": _s.attempts - 1}
    for lease in leases:
        lease.release(connection, **values)
    announce(connection, INVESTIGATIONS)
