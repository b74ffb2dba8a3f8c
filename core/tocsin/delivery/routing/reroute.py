"""Rerouting of events that did not match any destination when they were routed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Connection, and_, exists, func, select, update

from tocsin.delivery.destinations.channels import OBSERVER_PREFIX
from tocsin.events import EVENTS
from tocsin.model import EventType
from tocsin.store import announce
from tocsin.store.tables import deliveries, events

BATCH = 10_000
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class ReroutedEvents:
    """Result of one batch."""

    count: int
    next_since: datetime | None
    """The time from which the next batch continues, or None if this was the last batch."""


def count_unmatched_events(connection: Connection, since: datetime, until: datetime) -> int:
    """Return how many events in a period did not match any destination."""
    counted = select(func.count()).select_from(events).where(_is_unmatched(since, until))
    return connection.scalars(counted).one()


def reroute_events(
    connection: Connection, since: datetime, until: datetime, *, most: int = BATCH
) -> ReroutedEvents:
    """Route the oldest unmatched events in a period to the current destinations.

    Events that a destination already has are skipped, so the function can be called again. Events
    that still do not match any destination stay unmatched.
    """
    unmatched = _is_unmatched(since, until)
    page = select(events.c.timestamp).where(unmatched).order_by(events.c.timestamp)
    following: datetime | None = connection.scalar(page.offset(most).limit(1))
    if following is not None:
        following = max(following, since + _MICROSECOND)
        unmatched = _is_unmatched(since, following)
    rerouted: int = connection.execute(
        update(events).where(unmatched).values(routed=False)
    ).rowcount
    if rerouted:
        announce(connection, EVENTS)
    return ReroutedEvents(rerouted, following)


def _is_unmatched(since: datetime, until: datetime) -> ColumnElement[bool]:
    """Return the condition for routed events without deliveries, except to observer plugins.

    The condition excludes suppressed events.
    """
    delivery = exists().where(
        deliveries.c.event_id == events.c.id,
        deliveries.c.destination.not_like(f"{OBSERVER_PREFIX}%"),
    )
    in_period = and_(events.c.timestamp >= since, events.c.timestamp < until)
    is_event = events.c.event_type.in_(list(EventType))
    return and_(
        in_period, is_event, events.c.routed.is_(True), events.c.suppressed_by.is_(None), ~delivery
    )
