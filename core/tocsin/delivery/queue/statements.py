"""SQL statements of the delivery queue.

Databases do not use a partial index for a condition that is passed as a parameter, so the
statements contain the states literally. SQLite uses a partial index only if the query repeats the
condition of the index.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import (
    Boolean,
    ColumnElement,
    Integer,
    Select,
    Text,
    Update,
    and_,
    bindparam,
    case,
    exists,
    func,
    insert,
    null,
    or_,
    select,
    update,
)

from tocsin.delivery.destinations.repository import DestinationState
from tocsin.delivery.queue.states import PENDING, is_stored_as
from tocsin.store import BulkStatement, BulkUpdate, is_in
from tocsin.store.tables import (
    Timestamp,
    attempts,
    deliveries,
    destinations,
    events,
    remote_objects,
)

_other = deliveries.alias("other")
_is_behind = exists().where(
    _other.c.destination == deliveries.c.destination,
    _other.c.subject == deliveries.c.subject,
    is_stored_as(PENDING, _other),
    _other.c.id != deliveries.c.id,
    or_(
        _other.c.id < deliveries.c.id,
        and_(_other.c.lease.is_not(None), _other.c.due_at > bindparam("now")),
    ),
)


def _select_claimable(*, in_order: bool, early: bool) -> Select[Any]:
    is_due = deliveries.c.due_at <= bindparam("now")
    return select(deliveries.c.id).where(
        deliveries.c.destination == bindparam("at_destination"),
        is_stored_as(PENDING),
        deliveries.c.lease.is_(None) if early else is_due,
        *([~_is_behind] if in_order else []),
    )


def _select_due(*, in_order: bool, early: bool) -> Select[Any]:
    return (
        _select_claimable(in_order=in_order, early=early)
        .add_columns(deliveries.c.event_id)
        .order_by(deliveries.c.due_at, deliveries.c.id)
        .limit(bindparam("most"))
        .with_for_update(skip_locked=True, of=deliveries)
    )


SELECT_DUE = {
    (in_order, early): _select_due(in_order=in_order, early=early)
    for in_order in (False, True)
    for early in (False, True)
}
"""Deliveries to claim, locked, longest due first.

The statements that follow name these deliveries, so PostgreSQL reads only their partitions.
"""
CLAIM = (
    update(deliveries)
    .where(is_in(deliveries.c.id, "ids"))
    .values(
        lease=bindparam("lease_name"),
        holder=bindparam("by_holder"),
        due_at=bindparam("leased_until"),
        begun_before=deliveries.c.begun_by,
        begun_by=bindparam("beginning_by"),
    )
)
SELECT_CLAIMABLE = {
    (in_order, early): _select_claimable(in_order=in_order, early=early).limit(1)
    for in_order in (False, True)
    for early in (False, True)
}
"""Queries that show whether a claim would find a delivery."""
SELECT_READY = select(destinations.c.name).where(
    is_in(destinations.c.name, "names"),
    destinations.c.state == DestinationState.ACTIVE,
    destinations.c.held_until.is_(None),
    ~exists().where(
        deliveries.c.destination == destinations.c.name,
        is_stored_as(PENDING),
        deliveries.c.due_at <= bindparam("now"),
    ),
    ~exists().where(remote_objects.c.destination == destinations.c.name),
)
"""Active destinations without due deliveries and without remote objects."""
SELECT_CLAIMED = (
    select(
        deliveries.c.id.label("delivery_id"),
        deliveries.c.attempts,
        deliveries.c.schedule_start,
        deliveries.c.begun_before,
        deliveries.c.remote_id.label("previous_remote_id"),
        remote_objects.c.remote_id.label("object_remote_id"),
        events,
    )
    .join(events, events.c.id == deliveries.c.event_id)
    .outerjoin(
        remote_objects,
        and_(
            remote_objects.c.destination == deliveries.c.destination,
            remote_objects.c.subject == deliveries.c.subject,
            remote_objects.c.home == bindparam("at_tenant"),
        ),
    )
    .where(is_in(deliveries.c.id, "ids"), is_in(events.c.id, "event_ids"))
)
STATUS_COLUMNS = (
    *("incident_number", "remote_url", "status", "resolution", "is_open"),
    *("status_version", "parent_id"),
    *("status_changed_at", "status_read_at", "status_due_at", "closed_here_at", "resolution_due"),
)
"""The columns of `remote_objects` with the status of an object."""
MARK_CLOSED = (
    update(remote_objects)
    .where(
        remote_objects.c.destination == bindparam("at_destination"),
        remote_objects.c.subject == bindparam("of_subject"),
    )
    .values(closed_here_at=bindparam("closed_at"))
)
SELECT_OBJECTS = select(
    remote_objects.c.subject, remote_objects.c.remote_id, remote_objects.c.event_id
).where(
    remote_objects.c.destination == bindparam("at_destination"),
    remote_objects.c.home == bindparam("at_tenant"),
    is_in(remote_objects.c.subject, "subjects"),
)
SELECT_LEASES = (
    select(deliveries.c.id, deliveries.c.lease)
    .where(is_in(deliveries.c.id, "ids"))
    .order_by(deliveries.c.id)
    .with_for_update()
)
SELECT_SUBJECTS = (
    select(deliveries.c.id, deliveries.c.destination, deliveries.c.subject)
    .where(is_in(deliveries.c.id, "ids"))
    .order_by(deliveries.c.event_id)
)
SELECT_PREDECESSORS = (
    select(deliveries.c.id, deliveries.c.subject, deliveries.c.lease, deliveries.c.due_at)
    .where(
        deliveries.c.destination == bindparam("at_destination"),
        is_in(deliveries.c.subject, "subjects"),
        is_stored_as(PENDING),
    )
    .order_by(deliveries.c.id)
)
"""Pending deliveries of other subjects."""
EXTEND = (
    update(deliveries)
    .where(is_in(deliveries.c.id, "ids"))
    .values(due_at=bindparam("leased_until"), begun_by=bindparam("beginning_by"))
)
RELEASE = (
    update(deliveries)
    .where(is_in(deliveries.c.id, "ids"))
    .values(
        due_at=bindparam("to_due_at"), lease=None, holder=None, begun_by=deliveries.c.begun_before
    )
)
"""Makes claimed deliveries due, as if they had not been claimed."""
RELEASE_BEGUN = RELEASE.values(begun_by=bindparam("to_due_at"))
OFFER = BulkStatement(
    insert(deliveries),
    (
        "id",
        "event_id",
        "destination",
        "subject",
        "state",
        "attempts",
        "schedule_start",
        "due_at",
        "created_at",
        "reason",
        "finished_at",
        "lease",
        "holder",
        "begun_by",
    ),
)


def _build_settle(new: Mapping[str, ColumnElement[Any]]) -> Update:
    return (
        update(deliveries)
        .where(deliveries.c.id == new["at_id"], deliveries.c.lease == new["at_lease"])
        .values(
            state=new["to_state"],
            attempts=new["to_attempts"],
            schedule_start=deliveries.c.schedule_start + new["spared"],
            begun_by=case((new["was_unsent"], deliveries.c.begun_before), else_=new["to_begun_by"]),
            due_at=new["to_due_at"],
            lease=null(),
            holder=null(),
            reason=new["to_reason"],
            remote_id=func.coalesce(new["to_remote_id"], deliveries.c.remote_id),
            remote_url=func.coalesce(new["to_remote_url"], deliveries.c.remote_url),
            finished_at=new["to_finished_at"],
        )
    )


SETTLE = BulkUpdate(
    _build_settle,
    {
        "at_id": Text(),
        "at_lease": Text(),
        "to_state": Text(),
        "to_attempts": Integer(),
        "spared": Integer(),
        "was_unsent": Boolean(),
        "to_begun_by": Timestamp(),
        "to_due_at": Timestamp(),
        "to_reason": Text(),
        "to_remote_id": Text(),
        "to_remote_url": Text(),
        "to_finished_at": Timestamp(),
    },
    deliveries.c.id,
    attempts,
    {
        "delivery_id": "at_id",
        "number": "to_attempts",
        "started_at": "to_begun_by",
        "duration_ms": "duration_ms",
        "outcome": "outcome",
        "status": "status",
        "reason": "to_reason",
        "response": "response",
    },
)
"""Ends and logs attempts whose lease is still held."""
