"""Destinations as stored in the database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, RowMapping, Select, func, or_, select

from tocsin.delivery.health.breaker import HealthStatus
from tocsin.delivery.queue.states import DEAD, ON_HOLD, PENDING, is_stored_as
from tocsin.registry import ManagedBy
from tocsin.store.tables import deliveries, destinations

TOPIC = "destinations"
"""Topic that announces created, changed, disabled and resumed destinations."""


class DestinationState(StrEnum):
    """State of a destination."""

    ACTIVE = "active"
    PAUSED = "paused"
    DISABLED = "disabled"
    DELETED = "deleted"


class StopReason(StrEnum):
    """Reason why a destination is not active."""

    FAILING = "failing"
    MANUAL = "manual"
    GONE = "gone"
    REMOVED = "removed-from-file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """One destination: `settings` as written, `secrets` encrypted."""

    name: str
    plugin: str
    managed_by: ManagedBy
    settings: Mapping[str, Any]
    secrets: bytes | None = None
    revision: int = 1
    """Incremented with each change; workers restart for a new revision."""
    state: DestinationState = DestinationState.ACTIVE
    reason: StopReason | None = None
    detail: str | None = None
    created_by: str
    created_at: datetime
    updated_at: datetime
    health: HealthStatus = field(default_factory=HealthStatus)

    @property
    def is_served(self) -> bool:
        """Whether Tocsin attempts deliveries, even if only as probes."""
        return self.state in (DestinationState.ACTIVE, DestinationState.PAUSED)

    @property
    def is_routed(self) -> bool:
        """Whether Tocsin creates deliveries for new events, even if only on hold."""
        return self.state is not DestinationState.DELETED and self.reason is not StopReason.REMOVED


def load_destinations(connection: Connection, *, lock: bool = False) -> list[Destination]:
    """Return every destination that is not deleted, sorted by name.

    `lock` locks the rows until the transaction ends.
    """
    query = (
        select(destinations)
        .where(destinations.c.state != DestinationState.DELETED)
        .order_by(destinations.c.name)
    )
    rows = connection.execute(query.with_for_update() if lock else query).mappings()
    return [destination_from_row(row) for row in rows]


def load_destination(
    connection: Connection, name: str, *, lock: bool = False
) -> Destination | None:
    """Return one destination, even if it was deleted; None if the name was never used.

    `lock` locks the row until the transaction ends.
    """
    query = select(destinations).where(destinations.c.name == name)
    row = connection.execute(query.with_for_update() if lock else query).mappings().one_or_none()
    return None if row is None else destination_from_row(row)


def destination_from_row(row: RowMapping) -> Destination:
    """Return the destination in a row of the table `destinations`."""
    return Destination(
        name=row["name"],
        plugin=row["plugin"],
        managed_by=ManagedBy(row["managed_by"]),
        settings=row["settings"],
        secrets=row["secrets"],
        revision=row["revision"],
        state=DestinationState(row["state"]),
        reason=StopReason(row["reason"]) if row["reason"] else None,
        detail=row["detail"],
        created_by=row["created_by"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        health=HealthStatus(
            is_paused=row["state"] == DestinationState.PAUSED,
            failures=row["failures"],
            failing_since=row["failing_since"],
            holds=row["holds"],
            held_until=row["held_until"],
        ),
    )


def destination_to_row(destination: Destination) -> dict[str, Any]:
    """Return the columns of a destination's row."""
    health = asdict(destination.health)
    del health["is_paused"]
    return {
        "name": destination.name,
        "plugin": destination.plugin,
        "managed_by": destination.managed_by,
        "settings": dict(destination.settings),
        "secrets": destination.secrets,
        "revision": destination.revision,
        "state": destination.state,
        "reason": destination.reason,
        "detail": destination.detail,
        "created_by": destination.created_by,
        "created_at": destination.created_at,
        "updated_at": destination.updated_at,
        **health,
    }


_COUNTED_STATES = (PENDING, ON_HOLD, DEAD)


@dataclass(frozen=True, slots=True)
class DestinationPage:
    """One page of destinations, sorted by name."""

    destinations: Sequence[Destination]
    total: int
    next: str | None
    """Name after which the next page starts; None on the last page."""


def list_destinations(
    connection: Connection,
    *,
    state: DestinationState | None = None,
    limit: int,
    after: str | None = None,
) -> DestinationPage:
    """Return one page of the destinations in a state, or of all destinations not deleted."""
    column = destinations.c.state
    matching = column != DestinationState.DELETED if state is None else column == state
    total = connection.scalars(select(func.count()).select_from(destinations).where(matching)).one()
    query = select(destinations).where(matching).order_by(destinations.c.name).limit(limit + 1)
    if after is not None:
        query = query.where(destinations.c.name > after)
    found = [destination_from_row(row) for row in connection.execute(query).mappings()]
    return DestinationPage(found[:limit], total, found[limit - 1].name if found[limit:] else None)


def count_waiting(connection: Connection, name: str) -> dict[str, int]:
    """Return the numbers of `waiting` and `dead` deliveries of a destination."""
    counts = {
        state: connection.execute(_count_deliveries(name, state)).scalar_one()
        for state in _COUNTED_STATES
    }
    return {"waiting": counts[PENDING] + counts[ON_HOLD], "dead": counts[DEAD]}


def _count_deliveries(name: str, state: str) -> Select[Any]:
    return select(func.count()).where(is_stored_as(state), deliveries.c.destination == name)


SELECT_REVISIONS = select(destinations.c.name, destinations.c.revision).where(
    destinations.c.state != DestinationState.DELETED,
    or_(destinations.c.reason.is_(None), destinations.c.reason != StopReason.REMOVED),
)
"""Names and revisions of the destinations that receive new events."""
_RECEIVING = SELECT_REVISIONS.order_by(destinations.c.name)


def load_revisions(connection: Connection) -> Sequence[tuple[str, int]]:
    """Return the destinations that receive new events, with their revisions."""
    return [(name, revision) for name, revision in connection.execute(_RECEIVING)]
