"""Resolutions that people choose in the receiver, and their effect on incidents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, Select, exists, select, update

from tocsin.delivery.queue.states import PENDING, is_stored_as
from tocsin.delivery.statuses.repository import StatusSource
from tocsin.model import IncidentDisposition, RemoteResolution
from tocsin.store.tables import deliveries, remote_objects

ApplyResolution = Callable[[Connection, RemoteResolution, datetime], object]
"""Applies a resolution to its incident, in the connection's transaction."""
_BATCH = 50
_o, _d = remote_objects.c, deliveries.c
_NO_DISPOSITION = "none"
# An attempt that is under way may be what closed the object
_is_settled = ~exists().where(
    _d.destination == _o.destination, _d.subject == _o.subject, is_stored_as(PENDING)
)


def _select_due(source: StatusSource) -> Select[Any]:
    names = ("subject", "incident_number", "remote_id", "status", "resolution", "is_open")
    columns = [_o[name] for name in (*names, "closed_here_at")]
    is_due = (_o.destination == source.destination, _o.resolution_due.is_(True), _is_settled)
    return select(*columns).where(*is_due).order_by(_o.subject).limit(_BATCH)


def has_due_resolutions(connection: Connection, source: StatusSource) -> bool:
    """Return whether to apply a changed status to the incident."""
    return connection.execute(_select_due(source).limit(1)).first() is not None


def resolve_incidents(
    connection: Connection, source: StatusSource, apply: ApplyResolution, now: datetime
) -> int:
    """Apply up to a batch of people's decisions, and return the number of changed statuses.

    Each change is applied once. Objects that Tocsin itself closed do not count as decisions.
    """
    rows = connection.execute(_select_due(source)).all()
    for row in rows:
        found = _find_resolution(row, source)
        if found is not None:
            apply(connection, found, now)
    subjects: Sequence[str] = [row.subject for row in rows]
    if subjects:
        is_one = (_o.destination == source.destination, _o.subject.in_(subjects))
        connection.execute(update(remote_objects).where(*is_one).values(resolution_due=False))
    return len(subjects)


def _find_resolution(row: Row[Any], source: StatusSource) -> RemoteResolution | None:
    """Return the decision, or None if there is none or it is not mapped to a disposition."""
    outcome = _NO_DISPOSITION
    if not row.is_open:
        known = [name for name in (row.resolution, row.status) if name in source.resolutions]
        if row.closed_here_at is not None or not known:
            return None
        outcome = source.resolutions[known[0]]
    named = " / ".join(filter(None, (row.status, row.resolution)))
    return RemoteResolution(
        incident_number=row.incident_number,
        destination=source.destination,
        disposition=None if outcome == _NO_DISPOSITION else IncidentDisposition(outcome),
        is_closed=not row.is_open,
        reason=f"{row.remote_id}: {named}",
    )
