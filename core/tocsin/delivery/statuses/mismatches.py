"""Remote objects whose status does not match their incident's status."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, Select, and_, case, func, or_, select

from tocsin.clock import isoformat, isoformat_or_none
from tocsin.delivery.destinations.repository import DestinationState
from tocsin.model import IncidentStatus, StatusMismatch
from tocsin.store.tables import destinations, incidents, remote_objects, status_readers

_DELETED = DestinationState.DELETED
_o, _i = remote_objects.c, incidents.c
_was_read = _o.status_read_at.is_not(None)
_is_closed = _i.status == IncidentStatus.CLOSED
_CONDITIONS: dict[StatusMismatch, ColumnElement[bool]] = {
    StatusMismatch.OBJECT_CLOSED: and_(_o.is_open.is_(False), ~_is_closed),
    StatusMismatch.OBJECT_OPEN: and_(_o.is_open.is_(True), _is_closed),
    StatusMismatch.OBJECT_MISSING: and_(_o.status.is_(None), ~_is_closed),
}
_KIND = case(*((condition, kind.value) for kind, condition in _CONDITIONS.items()), else_=None)
_OBJECT = ("destination", "remote_id", "remote_url", "status", "resolution", "is_open")
_MOMENTS = ("status_changed_at", "status_read_at")


def represent_remote_object(row: RowMapping) -> dict[str, Any]:
    """Return a remote object as JSON, with its last known status."""
    shown = {name: row[name] for name in _OBJECT}
    return shown | {name: isoformat_or_none(row[name]) for name in _MOMENTS}


def list_mismatches(
    connection: Connection,
    *,
    limit: int,
    kind: StatusMismatch | None = None,
    destination: str | None = None,
    after: tuple[int, str] | None = None,
) -> Sequence[dict[str, Any]]:
    """Return mismatches, newest incidents first.

    `after` is the incident number and the destination of the last mismatch on the previous page.
    """
    conditions = [_was_read, or_(*_CONDITIONS.values()) if kind is None else _CONDITIONS[kind]]
    if destination is not None:
        conditions.append(_o.destination == destination)
    if after is not None:
        number, name = after
        same = and_(_o.incident_number == number, _o.destination < name)
        conditions.append(or_(_o.incident_number < number, same))
    query = _select_objects().where(*conditions)
    newest = query.order_by(_o.incident_number.desc(), _o.destination.desc()).limit(limit)
    return [
        {
            "mismatch": row["mismatch"],
            "incident_number": row["incident_number"],
            "incident_status": row["incident_status"],
            **represent_remote_object(row),
        }
        for row in connection.execute(newest).mappings()
    ]


def _select_objects() -> Select[Any]:
    columns = (_o[name] for name in ("incident_number", *_OBJECT, *_MOMENTS))
    shown = (_KIND.label("mismatch"), _i.status.label("incident_status"))
    return (
        select(*columns, *shown)
        .join(incidents, _i.number == _o.incident_number)
        .join(destinations, destinations.c.name == _o.destination)
        .where(destinations.c.state != _DELETED)
    )


def load_remote_objects(connection: Connection, number: int) -> Sequence[dict[str, Any]]:
    """Return the remote objects of an incident whose status was read, by destination."""
    query = _select_objects().where(_o.incident_number == number, _was_read)
    rows = connection.execute(query.order_by(_o.destination)).mappings()
    return [{**represent_remote_object(row), "mismatch": row["mismatch"]} for row in rows]


def summarize_statuses(connection: Connection) -> Sequence[dict[str, Any]]:
    """Return the numbers of objects and mismatches by destination, and why reads fail."""
    r = status_readers.c
    counted = (
        select(_o.destination, func.count().label("objects"), func.count(_KIND).label("mismatches"))
        .join(incidents, _i.number == _o.incident_number)
        .where(_was_read)
        .group_by(_o.destination)
        .subquery()
    )
    query = (
        select(r.destination, r.failing_since, r.reason, counted.c.objects, counted.c.mismatches)
        .join(destinations, destinations.c.name == r.destination)
        .outerjoin(counted, counted.c.destination == r.destination)
        .where(destinations.c.state != _DELETED)
        .order_by(r.destination)
    )
    return [
        {
            "destination": row.destination,
            "objects": row.objects or 0,
            "mismatches": row.mismatches or 0,
            "failing_since": None if row.failing_since is None else isoformat(row.failing_since),
            "reason": row.reason,
        }
        for row in connection.execute(query)
    ]
