"""Filters of delivery lists and replays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import ColumnElement, Connection, select

from tocsin.delivery.destinations.repository import DestinationState
from tocsin.delivery.queue.states import ON_HOLD, PENDING, DeliveryState, is_stored_as
from tocsin.errors import TocsinError
from tocsin.model import EventType
from tocsin.store.tables import EPOCH, deliveries, destinations, events
from tocsin.validation import suggest_nearest

_END = datetime.max.replace(tzinfo=UTC)

SOURCE = deliveries.join(events, events.c.id == deliveries.c.event_id).outerjoin(
    destinations, destinations.c.name == deliveries.c.destination
)
"""What the conditions of this module can be asked of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryFilter:
    """What of a delivery has to be so; None leaves it open."""

    destination: str | None = None
    event_type: EventType | None = None
    subject: str | None = None
    since: datetime | None = None
    """The event happened then or later."""
    until: datetime | None = None
    """The event happened before."""

    def conditions(self) -> Iterator[ColumnElement[bool]]:
        """Yield what this asks of a row of `SOURCE`."""
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
    """Return the condition that this is the state that a delivery is shown in.

    What waits is looked up first, by its own index, and then put in the order of a list: how much
    that takes follows from how much waits, and not from how much there ever was.
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
    """There is no destination of this name, and never was one."""


def require_destination(connection: Connection, name: str) -> None:
    """Raise NoSuchDestinationError, which names the most similar one, where there never was one."""
    known = connection.scalars(select(destinations.c.name).order_by(destinations.c.name)).all()
    if name not in known:
        raise NoSuchDestinationError(
            f"there is no destination {name!r}{suggest_nearest(name, known)}"
        )
