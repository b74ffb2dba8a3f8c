"""The life cycle of destinations: creation, change, stop, resumption and deletion.

Every change gives the destination a new revision: its workers restart, its health starts over, and
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
    """Store and return a new destination; its name must be unused or deleted.

    NameTakenError if another destination has the name.
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

    The caller must have loaded it in this transaction, locked.
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
    enabled: bool | None,
    now: datetime,
) -> Destination:
    """Store new settings of a destination, or whether it is enabled, or both, and return it.

    New settings end an automatic stop, but not a manual one. Without an actual change, returns the
    destination as it is. The caller must have loaded it in this transaction, locked.
    """
    is_stopped = destination.reason is StopReason.MANUAL
    stop = is_stopped if enabled is None else not enabled
    is_so = is_stopped if stop else destination.state is DestinationState.ACTIVE
    if written is None and is_so:
        return destination
    if written is not None:
        settings = to_json_settings(written.settings)
        destination = replace(destination, settings=settings, secrets=written.secrets)
    return (disable_destination if stop else resume_destination)(connection, destination, now)


def disable_destination(
    connection: Connection, destination: Destination, now: datetime
) -> Destination:
    """Disable a destination until someone enables it, and return it; its deliveries are on hold."""
    stopped = replace(
        destination, state=DestinationState.DISABLED, reason=StopReason.MANUAL, detail=None
    )
    return change_destination(connection, stopped, now)


def resume_destination(
    connection: Connection, destination: Destination, now: datetime
) -> Destination:
    """Activate a destination, whatever stopped it, and return it; deliveries on hold are sent."""
    active = replace(destination, state=DestinationState.ACTIVE, reason=None, detail=None)
    return change_destination(connection, active, now)


def delete_destination(
    connection: Connection, destination: Destination, now: datetime
) -> Destination:
    """Delete a destination, and return it; its waiting deliveries become dead for that reason."""
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
