"""The statements of the queue in the database, made once."""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
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

from tocsin.delivery.queue.seam import PENDING
from tocsin.delivery.queue.states import is_stored_as
from tocsin.store.batches import BulkStatement
from tocsin.store.tables import attempts, deliveries, events, remote_objects

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


def _build_claim(*, in_order: bool, early: bool) -> Update:
    is_due = deliveries.c.due_at <= bindparam("now")
    due = select(deliveries.c.id).where(
        deliveries.c.destination == bindparam("at_destination"),
        is_stored_as(PENDING),
        deliveries.c.lease.is_(None) if early else is_due,
        *([~_is_behind] if in_order else []),
    )
    first = due.order_by(deliveries.c.due_at, deliveries.c.id).limit(bindparam("most"))
    chosen = first.with_for_update(skip_locked=True, of=deliveries).cte("due")
    return (
        update(deliveries)
        .where(deliveries.c.id.in_(select(chosen.c.id)))
        .values(
            lease=bindparam("lease_name"),
            holder=bindparam("by_holder"),
            due_at=bindparam("leased_until"),
            begun_before=deliveries.c.begun_by,
            begun_by=bindparam("beginning_by"),
        )
        .returning(deliveries.c.id)
    )


CLAIMS = {
    (in_order, early): _build_claim(in_order=in_order, early=early)
    for in_order in (False, True)
    for early in (False, True)
}
TAKEN = (
    select(
        deliveries.c.id.label("delivery_id"),
        deliveries.c.attempts,
        deliveries.c.schedule_start,
        deliveries.c.begun_before,
        deliveries.c.remote_id.label("left"),
        remote_objects.c.remote_id.label("remote"),
        events,
    )
    .join(events, events.c.id == deliveries.c.event_id)
    .outerjoin(
        remote_objects,
        and_(
            remote_objects.c.destination == deliveries.c.destination,
            remote_objects.c.subject == deliveries.c.subject,
            remote_objects.c.home == bindparam("at_home"),
        ),
    )
    .where(deliveries.c.id.in_(bindparam("ids", expanding=True)))
)
RELATED = select(
    remote_objects.c.subject, remote_objects.c.remote_id, remote_objects.c.event_id
).where(
    remote_objects.c.destination == bindparam("at_destination"),
    remote_objects.c.home == bindparam("at_home"),
    remote_objects.c.subject.in_(bindparam("subjects", expanding=True)),
)
LEASES = (
    select(deliveries.c.id, deliveries.c.lease, deliveries.c.destination, deliveries.c.subject)
    .where(deliveries.c.id.in_(bindparam("ids", expanding=True)))
    .order_by(deliveries.c.id)
    .with_for_update()
)
IN_FRONT = (
    select(deliveries.c.id, deliveries.c.subject, deliveries.c.lease, deliveries.c.due_at)
    .where(
        deliveries.c.destination == bindparam("at_destination"),
        deliveries.c.subject.in_(bindparam("subjects", expanding=True)),
        is_stored_as(PENDING),
    )
    .order_by(deliveries.c.id)
)
"""What is not delivered yet of other subjects."""
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
    ),
)
SETTLE = BulkStatement(
    update(deliveries)
    .where(deliveries.c.id == bindparam("at_id"))
    .values(
        state=bindparam("to_state"),
        attempts=bindparam("to_attempts"),
        schedule_start=deliveries.c.schedule_start + bindparam("spared"),
        begun_by=case(
            (bindparam("was_unsent", type_=Boolean), deliveries.c.begun_before),
            else_=bindparam("to_begun_by", type_=deliveries.c.begun_by.type),
        ),
        due_at=bindparam("to_due_at"),
        lease=null(),
        holder=null(),
        reason=bindparam("to_reason"),
        remote_id=func.coalesce(bindparam("to_remote_id", type_=Text), deliveries.c.remote_id),
        remote_url=func.coalesce(bindparam("to_remote_url", type_=Text), deliveries.c.remote_url),
        finished_at=bindparam("to_finished_at"),
    ),
    (
        "at_id",
        "to_state",
        "to_attempts",
        "spared",
        "was_unsent",
        "to_begun_by",
        "to_due_at",
        "to_reason",
        "to_remote_id",
        "to_remote_url",
        "to_finished_at",
    ),
)
LOG_ATTEMPT = BulkStatement(
    insert(attempts),
    (
        "delivery_id",
        "number",
        "started_at",
        "duration_ms",
        "outcome",
        "status",
        "reason",
        "response",
    ),
)
