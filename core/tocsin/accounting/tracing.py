"""The chain of one incident: what brought it, what was said of it, and where that arrived."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, RowMapping, select

from tocsin.accounting.arrivals import outcome_of, rank
from tocsin.accounting.stretches import point
from tocsin.clock import isoformat
from tocsin.delivery.history.reads import outline_attempt
from tocsin.delivery.history.whereabouts import COLUMNS, whereabouts
from tocsin.incidents.storing.alerting import ALERTED, BELOW, QUIET, ROSE
from tocsin.store.tables import attempts, coverage, deliveries, destinations, events, incidents

ALERT_WORDS = {
    ALERTED: "an event was written for whoever wants to hear of it",
    BELOW: "it is below Medium, of which nobody is told",
    QUIET: "it was read quietly, as the provider's settings have it",
    ROSE: "it was first read below Medium and rose later, of which nobody is told"
    " unless the provider's settings ask for it",
}


def trace(connection: Connection, number: int) -> dict[str, Any] | None:
    """Return the incident's whole chain as it is shown, None where there is none of this number."""
    query = select(incidents).where(incidents.c.number == number)
    incident = connection.execute(query).mappings().one_or_none()
    if incident is None:
        return None
    return {
        "incident": _incident(incident),
        "coverage": _coverage(connection, incident["coverage_id"]),
        "alert": {
            "outcome": incident["alert_outcome"],
            "detail": ALERT_WORDS[incident["alert_outcome"]],
        },
        "events": _events(connection, f"incident:{number}"),
    }


def _incident(row: RowMapping) -> dict[str, Any]:
    names = ("number", "provider", "external_id", "title", "severity")
    return {name: row[name] for name in names} | {"created_at": isoformat(row["created_at"])}


def _coverage(connection: Connection, row_id: int) -> dict[str, Any]:
    """Return the stretch that brought it."""
    query = select(coverage).where(coverage.c.id == row_id)
    row = connection.execute(query).mappings().one()
    began, ended = isoformat(row["started_at"]), isoformat(row["finished_at"])
    # of what is pushed a row holds the latest moment, which may be after that of this incident
    is_pushed = row["unit"] == "time" and row["start"] == row["end"]
    return {
        "provider": row["provider"],
        "stream": row["stream"],
        "source": row["source"],
        "from": began if is_pushed else point(row["start"], row["unit"]),
        "to": ended if is_pushed else point(row["end"], row["unit"]),
        "outcome": row["outcome"],
        "reason": row["reason"],
        "started_at": began,
        "finished_at": ended,
    }


def _events(connection: Connection, subject: str) -> list[dict[str, Any]]:
    about = select(events.c.id, events.c.event_type, events.c.timestamp, events.c.routed).where(
        events.c.subject == subject
    )
    rows = connection.execute(about.order_by(events.c.id)).mappings().all()
    arrived = _deliveries(connection, [row["id"] for row in rows])
    return [_event(row, arrived[row["id"]]) for row in rows]


def _event(row: RowMapping, its_deliveries: Sequence[dict[str, Any]]) -> dict[str, Any]:
    worst = max((rank(delivery["state"]) for delivery in its_deliveries), default=None)
    return {
        "id": row["id"],
        "event_type": row["event_type"],
        "timestamp": isoformat(row["timestamp"]),
        "outcome": outcome_of(routed=row["routed"], worst=worst),
        "deliveries": its_deliveries,
    }


def _deliveries(connection: Connection, of: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """Return the deliveries of each of these events."""
    query = (
        select(*COLUMNS)
        .outerjoin(destinations, destinations.c.name == deliveries.c.destination)
        .where(deliveries.c.event_id.in_(of))
        .order_by(deliveries.c.id)
    )
    rows = connection.execute(query).mappings().all()
    tried = _attempts(connection, [row["id"] for row in rows])
    found = defaultdict(list)
    for row in rows:
        found[row["event_id"]].append(whereabouts(row) | {"attempts": tried[row["id"]]})
    return found


def _attempts(connection: Connection, of: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """Return the attempts at each of these deliveries."""
    told = [column for column in attempts.c if column is not attempts.c.response]
    query = select(*told).where(attempts.c.delivery_id.in_(of)).order_by(attempts.c.number)
    found = defaultdict(list)
    for row in connection.execute(query).mappings():
        found[row["delivery_id"]].append(outline_attempt(row))
    return found
