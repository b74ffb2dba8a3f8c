"""Making, changing, stopping and resuming destinations, from a file and over HTTP alike.

Whatever someone changes gives the destination a new revision: its workers begin anew, its receiver
is judged anew, and what waits for it is due, with a schedule of its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, update
from sqlalchemy import delete as delete_from

from tocsin.delivery.destinations.records import (
    TOPIC,
    Destination,
    Reason,
    State,
    columns_of,
    load_destination,
)
from tocsin.delivery.health.breaker import Standing
from tocsin.delivery.queue.requeueing import bury, requeue
from tocsin.errors import NameTakenError
from tocsin.registry import ManagedBy
from tocsin.store import announce
from tocsin.store.conflicts import insert_into
from tocsin.store.tables import destinations, remote_objects


@dataclass(frozen=True, slots=True)
class Written:
    """A destination as someone wrote it; `secrets` are encrypted, or None in a file."""

    name: str
    plugin: str
    settings: Mapping[str, Any]
    managed_by: ManagedBy
    secrets: bytes | None = None


def create(connection: Connection, written: Written, by: str, now: datetime) -> Destination:
    """Store a new destination and return it; NameTakenError. A deleted one's name is free."""
    existing = load_destination(connection, written.name, lock=True)
    if existing is not None and existing.state is not State.DELETED:
        raise NameTakenError(written.name)
    made = Destination(
        name=written.name,
        plugin=written.plugin,
        managed_by=written.managed_by,
        settings=plain(written.settings),
        secrets=written.secrets,
        revision=existing.revision + 1 if existing else 1,
        created_by=by,
        created_at=now,
        updated_at=now,
    )
    if existing is None:
        return _insert(connection, made)
    # what the receiver of the deleted one called its objects says nothing to this one's
    connection.execute(delete_from(remote_objects).where(remote_objects.c.destination == made.name))
    return _store(connection, made)


def change(connection: Connection, destination: Destination, now: datetime) -> Destination:
    """Store what was changed of a destination, in a new revision, and return that.

    What it is to be must have been read in this transaction, locked.
    """
    changed = replace(
        destination, revision=destination.revision + 1, updated_at=now, standing=Standing()
    )
    if changed.is_served:
        requeue(connection, changed.name, now)
    return _store(connection, changed)


def amend(
    connection: Connection,
    destination: Destination,
    written: Written | None,
    enabled: bool | None,
    now: datetime,
) -> Destination:
    """Store what someone wrote anew of a destination, or whether it is to be served, or both.

    What is written anew ends an automatic stop, but nobody's own. Returns the destination, as it
    was where all of that was so already. It must have been read in this transaction, locked.
    """
    is_stopped = destination.reason is Reason.MANUAL
    stop = is_stopped if enabled is None else not enabled
    is_so = is_stopped if stop else destination.state is State.ACTIVE
    if written is None and is_so:
        return destination
    if written is not None:
        settings = plain(written.settings)
        destination = replace(destination, settings=settings, secrets=written.secrets)
    return (disable if stop else resume)(connection, destination, now)


def disable(connection: Connection, destination: Destination, now: datetime) -> Destination:
    """Send nothing there until someone enables it; what comes for it is parked."""
    stopped = replace(destination, state=State.DISABLED, reason=Reason.MANUAL, detail=None)
    return change(connection, stopped, now)


def resume(connection: Connection, destination: Destination, now: datetime) -> Destination:
    """Send there again what is parked and what comes, whatever it was stopped for."""
    active = replace(destination, state=State.ACTIVE, reason=None, detail=None)
    return change(connection, active, now)


def delete(connection: Connection, destination: Destination, now: datetime) -> Destination:
    """End a destination; what waits for it is dead, with that as the reason."""
    ended = replace(destination, state=State.DELETED, reason=None, detail=None, secrets=None)
    changed = change(connection, ended, now)
    bury(connection, now)
    return changed


def plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings as they come back from the database: TOML knows dates, JSON does not."""
    result: dict[str, Any] = json.loads(json.dumps(settings, default=str))
    return result


def _insert(connection: Connection, destination: Destination) -> Destination:
    statement = insert_into(connection, destinations).values(columns_of(destination))
    if not connection.execute(statement.on_conflict_do_nothing()).rowcount:
        raise NameTakenError(destination.name)  # by someone else at this moment
    announce(connection, TOPIC)
    return destination


def _store(connection: Connection, destination: Destination) -> Destination:
    connection.execute(
        update(destinations)
        .where(destinations.c.name == destination.name)
        .values(columns_of(destination))
    )
    announce(connection, TOPIC)
    return destination
