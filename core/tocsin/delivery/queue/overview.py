"""Overview of a node's destinations: which of them may have work."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, and_, case, exists, false, or_, select

from tocsin.delivery.queue.states import PENDING, is_stored_as
from tocsin.store.tables import deliveries, destinations


@dataclass(frozen=True, slots=True)
class DestinationOverview:
    """An active or paused destination, and whether there may be deliveries to claim."""

    name: str
    revision: int
    has_work: bool
    """Whether a delivery is due or, if the receiver is to be probed, any is pending."""


def load_overview(connection: Connection, now: datetime) -> list[DestinationOverview]:
    """Return all active and paused destinations, by name."""
    of_it = (deliveries.c.destination == destinations.c.name, is_stored_as(PENDING))
    may_probe = or_(destinations.c.probing_until.is_(None), destinations.c.probing_until <= now)
    has_work = case(
        (destinations.c.held_until.is_(None), exists().where(*of_it, deliveries.c.due_at <= now)),
        (
            and_(destinations.c.held_until <= now, may_probe),
            exists().where(*of_it, deliveries.c.lease.is_(None)),
        ),
        else_=false(),
    )
    query = (
        select(destinations.c.name, destinations.c.revision, has_work.label("has_work"))
        .where(destinations.c.state.in_(["active", "paused"]))
        .order_by(destinations.c.name)
    )
    return [
        DestinationOverview(row.name, row.revision, bool(row.has_work))
        for row in connection.execute(query)
    ]
