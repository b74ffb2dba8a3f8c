"""Stored statuses of remote objects, and the leases of their readers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, and_, bindparam, or_, select, update

from tocsin.delivery.destinations.repository import DestinationState
from tocsin.model import RemoteStatus
from tocsin.store import Lease, LeasedTable, build_insert, clean_text, find_absent_nodes, is_in
from tocsin.store.tables import destinations, remote_objects, status_readers

PACE = timedelta(seconds=1)
"""Pause between two batches of a destination."""
WEBHOOK_PAUSE = timedelta(seconds=10)
"""How long after a read of an object a webhook can cause the next read."""
_OF_AGE = 0.02
"""Fraction of a status's age after which Tocsin reads the status again."""
_LONGEST = timedelta(days=1)
_SKEW = timedelta(minutes=1)
"""Maximum difference between the clocks of two nodes."""
_INCIDENT = "incident:"
_TEXT_LIMIT, _REASON_LIMIT = 200, 1_000
_leased = LeasedTable(status_readers, status_readers.c.destination)
_o, _r = remote_objects.c, status_readers.c


@dataclass(frozen=True, slots=True)
class StatusSource:
    """A destination whose statuses are read."""

    destination: str
    home: str
    """The channel's key for the tenant in which the objects are."""
    interval: timedelta
    most: int
    """Maximum number of objects in a batch."""
    resolutions: Mapping[str, str] = field(default_factory=dict)
    """Outcome for each resolution or status of closed objects; empty if none is applied."""


@dataclass(frozen=True, slots=True)
class StatusBatch:
    """Incidents' objects whose statuses are due, and the lease for reading them."""

    lease: Lease
    objects: Mapping[str, str]
    """Remote IDs by subject."""
    due_at: Mapping[str, datetime]
    """Since when each object has been due, by subject."""
    claimed_at: datetime
    resolving_since: datetime | None
    """Since when Tocsin applies the resolutions of closed objects; None if it does not."""


def has_due_statuses(connection: Connection, source: StatusSource, now: datetime) -> bool:
    """Return whether an active destination has due objects that can be read now."""
    query = select(destinations.c.state).where(destinations.c.name == source.destination)
    if connection.scalar(query) != DestinationState.ACTIVE:
        return False
    reader = _load_reader(connection, source.destination)
    if reader is not None and reader.due_at > now:
        return False
    return bool(_load_due(connection, source, now, 1))


def claim_statuses(
    connection: Connection, source: StatusSource, node: int, now: datetime
) -> StatusBatch | None:
    """Return the objects that have been due longest, with the lease on their destination.

    Returns None if another node is reading or nothing is due. Objects that do not belong to an
    incident never become due again.
    """
    destination = source.destination
    first = {"destination": destination, "failures": 0, "due_at": now}
    connection.execute(
        build_insert(connection, status_readers).values(first).on_conflict_do_nothing()
    )
    reader = _load_reader(connection, destination)
    assert reader is not None  # noqa: S101 - it was just stored
    if reader.due_at > now:
        return None
    if not _leased.is_free(reader, now) and not find_absent_nodes(connection, [reader.node]):
        return None
    due = _load_due(connection, source, now, source.most)
    if others := [row.subject for row in due if not row.subject.startswith(_INCIDENT)]:
        is_other = (_o.destination == destination, _o.subject.in_(others))
        connection.execute(update(remote_objects).where(*is_other).values(status_due_at=None))
    read = [row for row in due if row.subject.startswith(_INCIDENT)]
    if not read:
        return None
    since = (reader.resolving_since or now) if source.resolutions else None
    token = _leased.acquire(connection, reader, destination, node, now, resolving_since=since)
    if token is None:
        return None
    objects = {row.subject: row.remote_id for row in read}
    due_at = {row.subject: row.status_due_at for row in read}
    return StatusBatch(Lease(_leased, destination, token), objects, due_at, now, since)


def _load_reader(connection: Connection, destination: str) -> Any:
    query = select(status_readers).where(_r.destination == destination)
    return connection.execute(query).one_or_none()


def _load_due(
    connection: Connection, source: StatusSource, now: datetime, limit: int
) -> Sequence[Any]:
    is_due = (_o.destination == source.destination, _o.home == source.home, _o.status_due_at <= now)
    columns = (_o.subject, _o.remote_id, _o.status_due_at)
    query = select(*columns).where(*is_due).order_by(_o.status_due_at)
    return connection.execute(query.limit(limit)).all()


_SELECT_NAMED = select(_o.subject).where(
    or_(  # each alternative has its own index
        and_(_o.destination == bindparam("at_destination"), _o.remote_id == bindparam("named")),
        and_(_o.destination == bindparam("at_destination"), _o.parent_id == bindparam("named")),
    ),
    _o.status_due_at.is_not(None),
)
"""The objects with an ID, or with a parent of this ID."""


_READ_SOON = (
    update(remote_objects)
    .where(_o.destination == bindparam("at_destination"), _o.subject == bindparam("of_subject"))
    .values(status_due_at=bindparam("due"))
)


def mark_due(
    connection: Connection, destination: str, remote_ids: Sequence[str], now: datetime
) -> int:
    """Make these objects' statuses due as soon as possible; return how many changed.

    `remote_ids` can also contain the IDs of the objects' parents, such as the cases of alerts.

    If an object is already due, nothing changes, unless a node may be reading it right now. That
    node would postpone the next read, and a change after the current read would go unnoticed.
    """
    columns = (_o.subject, _o.status_due_at, _o.status_read_at)
    subjects = set[str]()
    for remote_id in remote_ids:
        if "\0" in remote_id:  # not the ID of a stored object
            continue
        key = {"at_destination": destination, "named": remote_id}
        subjects.update(connection.scalars(_SELECT_NAMED, key))
    if not subjects:
        return 0
    is_named = (_o.destination == destination, is_in(_o.subject, "subjects"))
    query = select(*columns).where(*is_named).order_by(_o.subject)
    rows = connection.execute(query.with_for_update(), {"subjects": list(subjects)}).all()
    reader = _load_reader(connection, destination)
    is_read = reader is not None and not _leased.is_free(reader, now)
    changes = []
    for row in rows:
        soon = now if row.status_read_at is None else max(now, row.status_read_at + WEBHOOK_PAUSE)
        if row.status_due_at > soon or (is_read and row.status_due_at < now):
            changes.append({"at_destination": destination, "of_subject": row.subject, "due": soon})
    if changes:
        connection.execute(_READ_SOON, changes)
    return len(changes)


_SHOWN = ("status", "resolution", "is_open")
_DETAILS = ("status_version", "parent_id")
_MOMENTS = ("status_changed_at", "status_read_at", "status_due_at")
_KEPT = (*_MOMENTS, "closed_here_at", "resolution_due", "updated_at")
_STORE = (
    update(remote_objects)
    .where(
        _o.destination == bindparam("at_destination"),
        _o.subject == bindparam("of_subject"),
        _o.remote_id == bindparam("known_as"),  # another object may have taken its place
    )
    .values(
        {
            name: bindparam(f"new_{name}")
            for name in (
                *("incident_number", "remote_url", *_SHOWN, *_DETAILS),
                *(*_MOMENTS, "closed_here_at", "resolution_due"),
            )
        }
    )
)


@dataclass(frozen=True, slots=True)
class LinkedStatus:
    """A status, and the URL at which people open the object."""

    status: RemoteStatus | None
    url: str | None


def store_statuses(
    connection: Connection,
    source: StatusSource,
    batch: StatusBatch,
    found: Mapping[str, LinkedStatus],
    now: datetime,
) -> None:
    """Store the statuses of a batch, by remote ID, and release the lease; raises `LeaseLost`.

    An object that no longer exists keeps its row, without a status.
    """
    batch.lease.confirm(connection)
    is_it = (_o.destination == batch.lease.key, _o.subject.in_(list(batch.objects)))
    columns = (_o[name] for name in (*_SHOWN, *_KEPT))
    query = select(_o.subject, *columns).where(*is_it).order_by(_o.subject)
    stored = {row.subject: row for row in connection.execute(query.with_for_update())}
    rows = []
    for subject, remote_id in sorted(batch.objects.items()):  # one order prevents deadlocks
        row, shown = stored.get(subject), _represent(found[remote_id].status)
        is_known = row is not None and row.status_read_at is not None
        if row is None:
            continue  # retention removed the incident
        is_same = is_known and all(getattr(row, name) == shown[name] for name in _SHOWN)
        changed_at = row.status_changed_at if is_same else now
        delay = min(max(source.interval, _OF_AGE * (now - changed_at)), _LONGEST)
        if row.status_due_at != batch.due_at[subject]:  # a webhook arrived during the read
            delay = WEBHOOK_PAUSE
        values = shown | {
            "incident_number": int(subject.removeprefix(_INCIDENT)),
            "remote_url": found[remote_id].url,
            "status_changed_at": changed_at,
            "status_read_at": now,
            "status_due_at": now + delay,
            "closed_here_at": _find_closure(row, shown, batch),
            "resolution_due": row.resolution_due if is_same else _is_decision(row, shown, batch),
        }
        key = {"at_destination": batch.lease.key, "of_subject": subject, "known_as": remote_id}
        rows.append(key | {f"new_{name}": value for name, value in values.items()})
    if rows:
        connection.execute(_STORE, rows)
    batch.lease.release(connection, failures=0, failing_since=None, reason=None, due_at=now + PACE)


def _find_closure(row: Any, shown: Mapping[str, Any], batch: StatusBatch) -> datetime | None:
    """Return when Tocsin closed the object, or None if a later read found it open."""
    closed_at: datetime | None = row.closed_here_at
    if closed_at is None or not shown["is_open"]:
        return closed_at
    return None if batch.claimed_at > closed_at + _SKEW else closed_at


def _is_decision(row: Any, shown: Mapping[str, Any], batch: StatusBatch) -> bool:
    """Return whether a changed status closes the object or reopens it.

    The first read of an object counts only if the object is new. Otherwise, anybody may have closed
    it before Tocsin began to apply resolutions.
    """
    if batch.resolving_since is None or shown["status"] is None:
        return False
    if row.status_read_at is None and row.updated_at < batch.resolving_since:
        return False
    return not shown["is_open"] or row.is_open is False


def _represent(status: RemoteStatus | None) -> dict[str, Any]:
    if status is None:
        return dict.fromkeys((*_SHOWN, *_DETAILS))
    return {
        "status": clean_text(status.status, _TEXT_LIMIT),
        "resolution": clean_text(status.resolution, _TEXT_LIMIT),
        "is_open": status.is_open,
        "status_version": clean_text(status.version, _TEXT_LIMIT),
        "parent_id": clean_text(status.parent_id, _TEXT_LIMIT),
    }


def postpone_reader(
    connection: Connection, lease: Lease, reason: str, delays: Sequence[timedelta], now: datetime
) -> datetime:
    """Store why the statuses could not be read, release the lease, and return the next attempt.

    The nth consecutive failure causes the nth delay, or the last one if there are fewer delays.
    """
    row = _load_reader(connection, lease.key)
    failures = 0 if row is None else row.failures
    due_at = now + delays[min(failures, len(delays) - 1)]
    lease.release(
        connection,
        failures=failures + 1,
        failing_since=now if row is None else row.failing_since or now,
        reason=clean_text(reason, _REASON_LIMIT),
        due_at=due_at,
    )
    return due_at
