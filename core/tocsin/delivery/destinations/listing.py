"""Reading destinations back, a page at a time, and how much waits for one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Select, func, select

from tocsin.delivery.destinations.records import Destination, DestinationState, destination_from_row
from tocsin.delivery.queue.seam import DEAD, PARKED, PENDING
from tocsin.delivery.queue.states import is_stored_as
from tocsin.store.tables import deliveries, destinations

_COUNTED_STATES = (PENDING, PARKED, DEAD)


@dataclass(frozen=True, slots=True)
class DestinationPage:
    """One page of a list, by name."""

    destinations: Sequence[Destination]
    total: int
    next: str | None
    """The name to go on after; None on the last page."""


def list_destinations(
    connection: Connection,
    *,
    state: DestinationState | None = None,
    limit: int,
    after: str | None = None,
) -> DestinationPage:
    """Return one page of the destinations in a state, or of all that were not deleted."""
    column = destinations.c.state
    matching = column != DestinationState.DELETED if state is None else column == state
    total = connection.scalars(select(func.count()).select_from(destinations).where(matching)).one()
    query = select(destinations).where(matching).order_by(destinations.c.name).limit(limit + 1)
    if after is not None:
        query = query.where(destinations.c.name > after)
    found = [destination_from_row(row) for row in connection.execute(query).mappings()]
    return DestinationPage(found[:limit], total, found[limit - 1].name if found[limit:] else None)


def count_waiting(connection: Connection, name: str) -> dict[str, int]:
    """Return how many deliveries to a destination are `waiting`, and how many `dead`."""
    counts = {
        state: connection.execute(_count_deliveries(name, state)).scalar_one()
        for state in _COUNTED_STATES
    }
    return {"waiting": counts[PENDING] + counts[PARKED], "dead": counts[DEAD]}


def _count_deliveries(name: str, state: str) -> Select[Any]:
    return select(func.count()).where(is_stored_as(state), deliveries.c.destination == name)
