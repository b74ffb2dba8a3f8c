"""Leases on sessions: one node at a time runs a session."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Row, Select, case, func, literal, select, update

from tocsin.errors import TocsinError
from tocsin.events import new_id
from tocsin.investigations.sessions import ACTIVE_STATUSES, INVESTIGATIONS
from tocsin.model import SessionStatus
from tocsin.store import announce, find_absent_nodes
from tocsin.store.tables import sessions

LEASE = timedelta(seconds=90)
_s = sessions.c
_is_under_way = _s.status.in_(ACTIVE_STATUSES)


class RunLeaseLost(TocsinError):  # noqa: N818 - a state, not a mistake
    """The lease is lost: another node has claimed the session, or it was cancelled."""


@dataclass(frozen=True, slots=True)
class RunLease:
    """The right to run a session, valid while its token is the one in the database."""

    session_id: str
    token: str
    attempt: int
    """Number of nodes that have claimed this run, including this one."""


def has_active_sessions(connection: Connection) -> bool:
    """Return whether there may be a session to claim."""
    return connection.execute(select(_s.id).where(_is_under_way).limit(1)).first() is not None


def claim_runs(connection: Connection, node: int, most: int, now: datetime) -> list[RunLease]:
    """Claim at most `most` sessions: queued ones, and those whose node is gone.

    Owners with the fewest active sessions come first, each with the oldest session.
    """
    waiting = connection.execute(_fair_order()).all()
    gone = _absent_nodes(connection, waiting, node)
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


def _absent_nodes(connection: Connection, waiting: Iterable[Row[Any]], node: int) -> set[int]:
    others = {row.node for row in waiting if row.node not in (None, node)}
    return set(find_absent_nodes(connection, sorted(others)))


def _is_free(row: Row[Any], gone: set[int], now: datetime) -> bool:
    if row.status == SessionStatus.QUEUED or row.lease is None:
        return True
    return row.leased_until <= now or row.node in gone


def _acquire(connection: Connection, row: Row[Any], node: int, now: datetime) -> RunLease | None:
    """Return the lease, None if another node was faster."""
    token = new_id("lease")
    as_it_was = (_s.status == row.status, _s.lease.is_not_distinct_from(row.lease))
    taken = (
        update(sessions)
        .where(_s.id == row.id, *as_it_was)
        .values(
            status=SessionStatus.RUNNING.value,
            attempts=_s.attempts + 1,
            started_at=func.coalesce(_s.started_at, literal(now, _s.started_at.type)),
            updated_at=now,
            node=node,
            lease=token,
            leased_until=now + LEASE,
        )
        .returning(_s.attempts)
    )
    attempt = connection.scalars(taken).one_or_none()
    return None if attempt is None else RunLease(row.id, token, attempt)


def renew_leases(
    connection: Connection, held: Mapping[RunLease, Mapping[str, Any]], now: datetime
) -> list[RunLease]:
    """Renew leases, store the progress of their runs, and return the leases that are lost."""
    return [lease for lease, at in held.items() if not _renew(connection, lease, at, now)]


def _renew(
    connection: Connection, lease: RunLease, progress: Mapping[str, Any], now: datetime
) -> bool:
    values = {"leased_until": now + LEASE, "progress": dict(progress), "updated_at": now}
    result = connection.execute(update(sessions).where(*lease_conditions(lease)).values(values))
    return result.rowcount == 1


def lease_conditions(lease: RunLease) -> tuple[Any, ...]:
    """Return the SQL conditions that hold while the lease is valid."""
    return (_s.id == lease.session_id, _s.lease == lease.token)


def confirm_lease(connection: Connection, lease: RunLease) -> None:
    """Lock a lease until the transaction ends. Raises RunLeaseLost if it is lost."""
    held = select(_s.id).where(*lease_conditions(lease)).with_for_update(read=True)
    if connection.execute(held).first() is None:
        raise RunLeaseLost(f"{lease.session_id}: claimed by another node, or cancelled")


def release_leases(connection: Connection, leases: Sequence[RunLease]) -> None:
    """Release leases, so that other nodes can claim them at once. Lost leases are ignored.

    A released claim does not count as an attempt, since the session is not at fault.
    """
    free = dict.fromkeys(("node", "lease", "leased_until"))
    values = {
        **free,
        "status": SessionStatus.QUEUED.value,
        "attempts": _s.attempts - 1,
    }
    for lease in leases:
        connection.execute(update(sessions).where(*lease_conditions(lease)).values(values))
    announce(connection, INVESTIGATIONS)
