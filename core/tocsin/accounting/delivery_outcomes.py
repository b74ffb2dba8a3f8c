"""Delivery outcomes of the events in a period."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, case, func, select

from tocsin.accounting.intervals import MAX_LISTED, Period
from tocsin.clock import isoformat
from tocsin.delivery import (
    DEAD,
    DELIVERED,
    ON_HOLD,
    PENDING,
    SHOWN_STATE,
    STATUS_COLUMNS,
    describe_status,
)
from tocsin.model import ChangeType, EventType
from tocsin.store.tables import deliveries, destinations, events

_STATES = (DELIVERED, PENDING, ON_HOLD, DEAD)
"""The delivery states, from best to worst."""
_STATE_OUTCOMES = ("arrived", "pending", "on-hold", "dead")
_NOT_ROUTED = "not-routed"
_NO_DESTINATION = "no-destination"
_SUPPRESSED = "suppressed"
EVENT_OUTCOMES = (*_STATE_OUTCOMES, _SUPPRESSED, _NO_DESTINATION, _NOT_ROUTED)
"""The outcomes of an event: its worst delivery's state, or why it does not have a delivery.

A suppressed event may have deliveries to observer plugins. While one of them has not arrived, the
outcome is the state of that delivery.
"""

_RANK = case({state: rank for rank, state in enumerate(_STATES)}, value=SHOWN_STATE)
_IS_THERE = destinations.c.name == deliveries.c.destination
IS_EVENT = events.c.event_type.in_(list(EventType))
"""Condition for events, as opposed to changes."""
IS_CHANGE = events.c.event_type.in_(list(ChangeType))
_joined = events.join(deliveries, deliveries.c.event_id == events.c.id).outerjoin(
    destinations, _IS_THERE
)


@dataclass(frozen=True, slots=True)
class DeliveryOutcomes:
    """How the events in a period were delivered."""

    events: dict[str, int]
    """The number of events by outcome."""
    changes: dict[str, int]
    """The number of followed changes by outcome."""
    destinations: list[dict[str, Any]]
    """The number of deliveries of each destination by state."""
    not_arrived: list[dict[str, Any]]
    """The oldest deliveries that have not arrived, with the reasons."""

    @property
    def not_arrived_total(self) -> int:
        """The number of deliveries that have not arrived."""
        missing = (PENDING, ON_HOLD, DEAD)
        return sum(counts[state] for counts in self.destinations for state in missing)


def summarize_deliveries(connection: Connection, period: Period) -> DeliveryOutcomes:
    """Return the delivery outcomes of the events in the period."""
    return DeliveryOutcomes(
        events=count_events(connection, *_within_period(period), IS_EVENT),
        changes=count_events(connection, *_within_period(period), IS_CHANGE),
        destinations=_count_deliveries(connection, period),
        not_arrived=[
            {
                **describe_status(row),
                "event_id": row["event_id"],
                "event_type": row["event_type"],
                "subject": row["subject"],
                "timestamp": isoformat(row["timestamp"]),
                "attempts": row["attempts"],
            }
            for row in connection.execute(select_missing(period)).mappings()
        ],
    )


def select_missing(period: Period) -> Select[Any]:
    """Return the query for deliveries of events that have not arrived."""
    return (
        select(*STATUS_COLUMNS, events.c.event_type, events.c.timestamp)
        .select_from(_joined)
        .where(*_within_period(period), IS_EVENT, deliveries.c.state != DELIVERED)
        .order_by(events.c.timestamp, deliveries.c.id)
        .limit(MAX_LISTED)
    )


def _within_period(period: Period) -> tuple[ColumnElement[bool], ...]:
    return events.c.timestamp > period.since, events.c.timestamp <= period.until


def count_events(connection: Connection, *conditions: ColumnElement[bool]) -> dict[str, int]:
    """Return the number of events that match these conditions, by outcome."""
    # A subquery per event; grouped by event, SQLite would scan the whole table
    worst = (
        select(func.max(_RANK))
        .select_from(deliveries.outerjoin(destinations, _IS_THERE))
        .where(deliveries.c.event_id == events.c.id)
        .scalar_subquery()
    )
    is_on_hold = events.c.routing_error.is_not(None)
    is_suppressed = events.c.suppressed_by.is_not(None)
    each = (
        select(
            events.c.routed,
            is_on_hold.label("on_hold"),
            is_suppressed.label("suppressed"),
            worst.label("worst"),
        )
        .where(*conditions)
        .subquery()
    )
    columns = each.c.routed, each.c.on_hold, each.c.suppressed, each.c.worst
    counts = dict.fromkeys(EVENT_OUTCOMES, 0)
    for routed, on_hold, suppressed, rank_of_worst, count in connection.execute(
        select(*columns, func.count()).group_by(*columns)
    ):
        outcome = classify_event(
            routed=routed, on_hold=on_hold, suppressed=suppressed, worst=rank_of_worst
        )
        counts[outcome] += count
    return counts


def classify_event(*, routed: bool, on_hold: bool, suppressed: bool, worst: int | None) -> str:
    """Return the outcome of an event.

    `worst` is the rank of its worst delivery, or None if it does not have one. `on_hold` says
    whether the event itself is on hold.
    """
    if suppressed and worst in {None, rank_state(DELIVERED)}:
        return _SUPPRESSED
    if worst is not None:
        return _STATE_OUTCOMES[worst]
    if on_hold:
        return _STATE_OUTCOMES[rank_state(ON_HOLD)]
    return _NO_DESTINATION if routed else _NOT_ROUTED


def rank_state(state: str) -> int:
    """Return the rank of a delivery state, from best to worst."""
    return _STATES.index(state)


def _count_deliveries(connection: Connection, period: Period) -> list[dict[str, Any]]:
    query = (
        select(deliveries.c.destination, SHOWN_STATE, func.count())
        .select_from(_joined)
        .where(*_within_period(period), IS_EVENT)
        .group_by(deliveries.c.destination, SHOWN_STATE)
    )
    counts: dict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(_STATES, 0))
    for destination, state, count in connection.execute(query):
        counts[destination][state] = count
    return [
        {"destination": name, **{str(state): count for state, count in counts[name].items()}}
        for name in sorted(counts)
    ]
