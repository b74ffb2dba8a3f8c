"""Stored deliveries and their attempts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, RowMapping, func, or_, select

from tocsin.clock import isoformat
from tocsin.delivery.history.delivery_status import STATUS_COLUMNS, describe_status
from tocsin.delivery.history.filters import SOURCE, DeliveryFilter, matches_shown_state
from tocsin.delivery.queue.states import DELIVERED, DeliveryState
from tocsin.events import parse_event_row
from tocsin.model import Event
from tocsin.store import Database, count_matching
from tocsin.store.tables import attempts, deliveries, events

_delivery_rows = select(
    *STATUS_COLUMNS,
    events.c.event_type,
    events.c.timestamp.label("happened_at"),
    *(events.c.data[name].as_string().label(name) for name in ("title", "severity")),
).select_from(SOURCE)


@dataclass(frozen=True, slots=True)
class DeliveryPage:
    """One page of deliveries, newest first."""

    deliveries: list[dict[str, Any]]
    total: int
    exact: bool
    """False if more deliveries than `total` match."""
    next: str | None
    """Value of `before` for the next page; None on the last page."""


def list_deliveries(
    connection: Connection,
    wanted: DeliveryFilter = DeliveryFilter(),  # noqa: B008 - frozen
    *,
    state: DeliveryState | None = None,
    limit: int = 50,
    before: str | None = None,
) -> DeliveryPage:
    """Return one page of matching deliveries, newest first; `before` continues a page."""
    conditions = [*wanted.conditions(), *([matches_shown_state(state)] if state else [])]
    page = _delivery_rows.where(*conditions).order_by(deliveries.c.id.desc()).limit(limit + 1)
    if before is not None:
        page = page.where(deliveries.c.id < before)
    found = connection.execute(page).mappings().all()
    total = count_matching(connection, SOURCE, conditions)
    return DeliveryPage(
        deliveries=[_represent(row) for row in found[:limit]],
        total=total.count,
        exact=total.exact,
        next=found[limit - 1]["id"] if len(found) > limit else None,
    )


def load_delivery(connection: Connection, delivery_id: str) -> dict[str, Any] | None:
    """Return one delivery with its event's envelope and attempts; None for an unknown ID."""
    query = _delivery_rows.add_columns(events.c.data).where(deliveries.c.id == delivery_id)
    row = connection.execute(query).mappings().one_or_none()
    if row is None:
        return None
    shown = _represent(row)
    envelope = {name: shown[name] for name in ("event_type", "timestamp")} | {"data": row["data"]}
    return shown | {"event": envelope, "attempts": list_attempts(connection, delivery_id)}


def load_event(connection: Connection, delivery_id: str) -> Event | None:
    """Return the event of a delivery; None for an unknown ID."""
    query = select(events).join(deliveries, deliveries.c.event_id == events.c.id)
    row = connection.execute(query.where(deliveries.c.id == delivery_id)).mappings().one_or_none()
    return None if row is None else parse_event_row(row)


def list_attempts(connection: Connection, delivery_id: str) -> list[dict[str, Any]]:
    """Return the attempts of a delivery in order; empty for an unknown ID."""
    query = (
        select(attempts).where(attempts.c.delivery_id == delivery_id).order_by(attempts.c.number)
    )
    return [represent_attempt(row) for row in connection.execute(query).mappings()]


def represent_attempt(row: RowMapping) -> dict[str, Any]:
    """Return an attempt as shown, with the response, which was truncated when it was stored."""
    return summarize_attempt(row) | {"response": row["response"].decode("utf-8", "replace")}


def summarize_attempt(row: RowMapping) -> dict[str, Any]:
    """Return an attempt as shown, without its response."""
    return {
        "number": row["number"],
        "started_at": isoformat(row["started_at"]),
        "duration_ms": row["duration_ms"],
        "outcome": row["outcome"],
        "status": row["status"],
        "reason": row["reason"],
    }


def _represent(row: RowMapping) -> dict[str, Any]:
    return {
        **describe_status(row),
        "event_id": row["event_id"],
        "event_type": row["event_type"],
        "subject": row["subject"],
        "title": row["title"],
        "severity": row["severity"],
        "timestamp": isoformat(row["happened_at"]),
        "attempts": row["attempts"],
        "created_at": isoformat(row["created_at"]),
    }


class StoredAttemptLog:
    """A `tocsin.AttemptLog` that reads from the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def last_answer(self, delivery_id: str) -> bytes:
        """Return the last response since the delivery was last delivered; empty without one."""
        return await self._database.read(load_last_response, delivery_id)


def load_last_response(connection: Connection, delivery_id: str) -> bytes:
    """Return the last response since the delivery was last delivered; empty without one."""
    has_answer = or_(attempts.c.outcome == DELIVERED, func.length(attempts.c.response) > 0)
    query = (
        select(attempts.c.outcome, attempts.c.response)
        .where(attempts.c.delivery_id == delivery_id, has_answer)
        .order_by(attempts.c.number.desc())
        .limit(1)
    )
    row = connection.execute(query).one_or_none()
    return b"" if row is None or row.outcome == DELIVERED else bytes(row.response)
