"""What was told of something, and each attempt at it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, RowMapping, select

from tocsin.accounting.arrivals import classify_event, rank_state
from tocsin.clock import isoformat
from tocsin.delivery.history.reads import summarize_attempt
from tocsin.delivery.history.whereabouts import STATUS_COLUMNS, describe_status
from tocsin.store.tables import attempts, deliveries, destinations, events

_EVENT = ("id", "event_type", "timestamp", "routed", "subject")


def load_events_about(connection: Connection, *subjects: str) -> dict[str, list[dict[str, Any]]]:
    """Return the events about each of these subjects, the oldest first, with their deliveries."""
    about = select(*(events.c[name] for name in _EVENT)).where(events.c.subject.in_(subjects))
    rows = connection.execute(about.order_by(events.c.id)).mappings().all()
    arrived = _load_deliveries(connection, [row["id"] for row in rows]) if rows else {}
    found: dict[str, list[dict[str, Any]]] = {subject: [] for subject in subjects}
    for row in rows:
        found[row["subject"]].append(_represent_event(row, arrived[row["id"]]))
    return found


def _represent_event(row: RowMapping, its_deliveries: Sequence[dict[str, Any]]) -> dict[str, Any]:
    worst = max((rank_state(delivery["state"]) for delivery in its_deliveries), default=None)
    return {
        "id": row["id"],
        "event_type": row["event_type"],
        "timestamp": isoformat(row["timestamp"]),
        "outcome": classify_event(routed=row["routed"], worst=worst),
        "deliveries": its_deliveries,
    }


def _load_deliveries(connection: Connection, of: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """Return the deliveries of each of these events."""
    query = (
        select(*STATUS_COLUMNS)
        .outerjoin(destinations, destinations.c.name == deliveries.c.destination)
        .where(deliveries.c.event_id.in_(of))
        .order_by(deliveries.c.id)
    )
    rows = connection.execute(query).mappings().all()
    tried = _load_attempts(connection, [row["id"] for row in rows])
    found = defaultdict(list)
    for row in rows:
        found[row["event_id"]].append(describe_status(row) | {"attempts": tried[row["id"]]})
    return found


def _load_attempts(connection: Connection, of: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """Return the attempts at each of these deliveries."""
    told = [column for column in attempts.c if column is not attempts.c.response]
    query = select(*told).where(attempts.c.delivery_id.in_(of)).order_by(attempts.c.number)
    found = defaultdict(list)
    for row in connection.execute(query).mappings():
        found[row["delivery_id"]].append(summarize_attempt(row))
    return found
