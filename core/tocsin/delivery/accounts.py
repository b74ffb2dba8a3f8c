"""Reading deliveries and their attempts back, and sending what rests once more."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, select, update

from tocsin.clock import isoformat
from tocsin.delivery.queue import DEAD, DELIVERED, PENDING
from tocsin.store.tables import attempts, deliveries, events

STATES = (PENDING, DELIVERED, DEAD)


def list_deliveries(
    connection: Connection,
    *,
    state: str | None = None,
    destination: str | None = None,
    limit: int = 50,
) -> list[dict[str, Any]]:
    """Return the newest deliveries that match, the newest first."""
    query = (
        select(deliveries, events.c.event_type)
        .join(events, events.c.id == deliveries.c.event_id)
        .where(*_matching(state, destination))
        .order_by(deliveries.c.id.desc())
        .limit(limit)
    )
    return [
        {
            "id": row.id,
            "destination": row.destination,
            "event_type": row.event_type,
            "subject": row.subject,
            "state": row.state,
            "attempts": row.attempts,
            "due_at": isoformat(row.due_at) if row.state == PENDING else None,
            "finished_at": isoformat(row.finished_at) if row.finished_at else None,
            "reason": row.reason,
        }
        for row in connection.execute(query)
    ]


def list_attempts(connection: Connection, delivery_id: str) -> list[dict[str, Any]]:
    """Return the attempts at one delivery in their order; none where there is no such delivery."""
    query = (
        select(attempts).where(attempts.c.delivery_id == delivery_id).order_by(attempts.c.number)
    )
    return [
        {
            "number": row.number,
            "started_at": isoformat(row.started_at),
            "duration_ms": row.duration_ms,
            "outcome": row.outcome,
            "status": row.status,
            "reason": row.reason,
            "response": row.response.decode("utf-8", "replace"),
        }
        for row in connection.execute(query)
    ]


def replay(
    connection: Connection,
    *,
    now: datetime,
    delivery_id: str | None = None,
    destination: str | None = None,
) -> int:
    """Make one delivery due, or all dead ones of a destination, and return how many those were.

    The event keeps its id, so a receiver that has it already can tell.
    """
    chosen = (
        (deliveries.c.id == delivery_id, deliveries.c.state != PENDING)
        if delivery_id is not None
        else _matching(DEAD, destination)
    )
    statement = update(deliveries).where(*chosen)
    replayed = connection.execute(
        statement.values(state=PENDING, due_at=now, lease=None, finished_at=None)
    )
    return int(replayed.rowcount)


def _matching(state: str | None, destination: str | None) -> list[ColumnElement[bool]]:
    wanted = ((deliveries.c.state, state), (deliveries.c.destination, destination))
    return [column == value for column, value in wanted if value is not None]
