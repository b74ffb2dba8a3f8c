"""Destinations' life cycle: creation, changes, emergency stops, resumption and deletion.

Every change gives the destination a new revision. Its workers restart, its health is reset, and
its waiting deliveries become due on new retry schedules.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, update
from sqlalchemy import delete as delete_from

from tocsin.delivery.destinations.repository import (
    TOPIC,
    Destination,
    DestinationState,
    StopReason,
    destination_to_row,
    load_destination,
)
from tocsin.delivery.health.breaker import HealthStatus
from tocsin.delivery.queue.requeue import expire_deliveries, requeue_destination
from tocsin.errors import NameTakenError
from tocsin.registry import ManagedBy
from tocsin.stops import NOBODY, StopKind, StopOrder, begin_stop, end_due_stops, end_stop
from tocsin.store import announce, build_insert
from tocsin.store.tables import destinations, remote_objects


@dataclass(frozen=True, slots=True)
class DestinationSpec:
    """A destination as requested; `secrets` are encrypted, or None if it comes from a file."""

    name: str
    plugin: str
    settings: Mapping[str, Any]
    managed_by: ManagedBy
    secrets: bytes | None = None


def create_destination(
    connection: Connection, written: DestinationSpec, by: str, now: datetime
) -> Destination:
    """Store and return a new destination.

    Raises NameTakenError if another destination that is not deleted has the name.
    """
    existing = load_destination(connection, written.name, lock=True)
    if existing is not None and existing.state is not DestinationState.DELETED:
        raise NameTakenError(written.name)
    made = Destination(
        name=written.name,
        plugin=written.plugin,
        managed_by=written.managed_by,
        settings=to_json_settings(written.settings),
        secrets=written.secrets,
        revision=existing.revision + 1 if existing else 1,
        created_by=by,
        created_at=now,
        updated_at=now,
    )
    if existing is None:
        return _insert_destination(connection, made)
    # remote ids of the deleted destination mean nothing to the new one
    connection.execute(delete_from(remote_objects).where(remote_objects.c.destination == made.name))
    return _store_destination(connection, made)


def change_destination(
    connection: Connection, destination: Destination, now: datetime
) -> Destination:
    """Store a changed destination as a new revision, and return it.

    The caller must have loaded and locked the destination in this transaction.
    """
    changed = replace(
        destination, revision=destination.revision + 1, updated_at=now, health=HealthStatus()
    )
    if changed.is_served:
        requeue_destination(connection, changed.name, now)
    return _store_destination(connection, changed)


def update_destination(
    connection: Connection,
    destination: Destination,
    written: DestinationSpec | None,
    order: StopOrder | bool | None,
    now: datetime,
    *,
    by: str = NOBODY,
) -> Destination:
    """Change a destination's settings, disable or enable it, or both, and return it.

    `order` is the emergency stop to begin, or True to end one. New settings resume a destination
    that Tocsin has paused or disabled, but do not end an emergency stop. If nothing changes, the
    function returns the destination unchanged. The caller must have loaded and locked the
    destination in this transaction. Raises `InvalidInputError` if the end of the stop is invalid.
    """
    detail, is_stopped = destination.detail, destination.reason is StopReason.MANUAL
    stop, is_new = is_stopped, False
    if isinstance(order, StopOrder):
        begun = begin_stop(connection, StopKind.DESTINATION, destination.name, order, now)
        stop, is_new = True, begun is not None
        detail = begun.describe() if begun is not None else detail
    elif order:
        stop = False
        end_stop(connection, StopKind.DESTINATION, destination.name, by, now)
    is_so = is_stopped if stop else destination.state is DestinationState.ACTIVE
    if written is None and is_so and not is_new:
        return destination
    if written is not None:
        settings = to_json_settings(written.settings)
        destination = replace(destination, settings=settings, secrets=written.secrets)
    if stop:
        return disable_destination(connection, destination, now, detail)
    return resume_destination(connection, destination, now)


def disable_destination(
    connection: Connection, destination: Destination, now: datetime, detail: str | None = None
) -> Destination:
    """Disable a destination until its emergency stop ends, and return it.

    Meanwhile, its deliveries are on hold. `detail` describes the emergency stop.
    """
    stopped = replace(
        destination, state=DestinationState.DISABLED, reason=StopReason.MANUAL, detail=detail
    )
    return change_destination(connection, stopped, now)


def enable_due_destinations(connection: Connection, now: datetime) -> list[str]:
    """Enable destinations whose emergency stop has reached its end, and return their names."""
    enabled = []
    for stop in end_due_stops(connection, StopKind.DESTINATION, now):
        destination = load_destination(connection, stop.name, lock=True)
        if destination is not None and destination.reason is StopReason.MANUAL:
            resume_destination(connection, destination, now)
            enabled.append(stop.name)
    return enabled


def resume_destination(
    connection: Connection, destination: Destination, now: datetime
) -> Destination:
    """Activate a destination in any state, and return it; its deliveries on hold are sent."""
    active = replace(destination, state=DestinationState.ACTIVE, reason=None, detail=None)
    return change_destination(connection, active, now)


def delete_destination(
    connection: Connection, destination: Destination, now: datetime, *, by: str = NOBODY
) -> Destination:
    """Delete a destination, and return it; its waiting deliveries become dead."""
    end_stop(connection, StopKind.DESTINATION, destination.name, by, now)
    ended = replace(
        destination, state=DestinationState.DELETED, reason=None, detail=None, secrets=None
    )
    changed = change_destination(connection, ended, now)
    expire_deliveries(connection, now)
    return changed


def to_json_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings as JSON stores them; TOML dates become text."""
    result: dict[str, Any] = json.loads(json.dumps(settings, default=str))
    return result


def _insert_destination(connection: Connection, destination: Destination) -> Destination:
    statement = build_insert(connection, destinations).values(destination_to_row(destination))
    if not connection.execute(statement.on_conflict_do_nothing()).rowcount:
        raise NameTakenError(destination.name)  # created concurrently
    announce(connection, TOPIC)
    return destination


def _store_destination(connection: Connection, destination: Destination) -> Destination:
    connection.execute(
        update(destinations)
        .where(destinations.c.name == destination.name)
        .values(destination_to_row(destination))
    )
    announce(connection, TOPIC)
    return destination
