"""Filters of delivery lists and replays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import ColumnElement, Connection, select

from tocsin.delivery.destinations.repository import DestinationState
from tocsin.delivery.queue.states import ON_HOLD, PENDING, DeliveryState, is_stored_as
from tocsin.errors import TocsinError
from tocsin.model import DeliveryType
from tocsin.store.tables import EPOCH, deliveries, destinations, events
from tocsin.validation import suggest_nearest

_END = datetime.max.replace(tzinfo=UTC)

SOURCE = deliveries.join(events, events.c.id == deliveries.c.event_id).outerjoin(
    destinations, destinations.c.name == deliveries.c.destination
)
"""The joined tables that the conditions in this module refer to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryFilter:
    """Criteria for deliveries; None matches all deliveries."""

    destination: str | None = None
    event_type: DeliveryType | None = None
    subject: str | None = None
    since: datetime | None = None
    """Earliest time of the event, inclusive."""
    until: datetime | None = None
    """Latest time of the event, exclusive."""

    def conditions(self) -> Iterator[ColumnElement[bool]]:
        """Yield the conditions on rows of `SOURCE`."""
        for column, wanted in (
            (deliveries.c.destination, self.destination),
            (events.c.event_type, self.event_type),
            (events.c.subject, self.subject),
        ):
            if wanted is not None:
                yield column == wanted
        if self.since is not None or self.until is not None:
            # always with both ends: by one alone, SQLite would rather walk every delivery
            yield events.c.timestamp >= (self.since or EPOCH)
            yield events.c.timestamp < (self.until or _END)


def matches_shown_state(state: DeliveryState) -> ColumnElement[bool]:
    """Return the condition that a delivery is shown in this state.

    The database looks up the few waiting deliveries in their own index and then sorts them, so the
    cost depends on the size of the backlog and not on the history.
    """
    active = select(destinations.c.name).where(destinations.c.state == DestinationState.ACTIVE)
    ids = select(deliveries.c.id).correlate(None)
    match state:
        case DeliveryState.PENDING:
            waiting = ids.where(is_stored_as(PENDING), deliveries.c.destination.in_(active))
            return deliveries.c.id.in_(waiting)
        case DeliveryState.ON_HOLD:
            held = ids.where(is_stored_as(PENDING), deliveries.c.destination.not_in(active))
            return deliveries.c.id.in_(ids.where(is_stored_as(ON_HOLD)).union_all(held))
    return is_stored_as(state)


class NoSuchDestinationError(TocsinError):
    """There has never been a destination with this name."""


def require_destination(connection: Connection, name: str) -> None:
    """Raise NoSuchDestinationError for an unknown name, and suggest the most similar one."""
    known = connection.scalars(select(destinations.c.name).order_by(destinations.c.name)).all()
    if name not in known:
        raise NoSuchDestinationError(
            f"there is no destination {name!r}{suggest_nearest(name, known)}"
        )
