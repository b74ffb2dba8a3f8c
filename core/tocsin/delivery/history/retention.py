"""Removal of old events with their deliveries, optionally archived first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    Select,
    delete,
    exists,
    or_,
    select,
    true,
)

from tocsin.clock import isoformat, isoformat_or_none
from tocsin.delivery.history.repository import represent_attempt
from tocsin.delivery.queue.states import DEAD, DELIVERED, ON_HOLD, PENDING, is_stored_as
from tocsin.identifiers import first_id
from tocsin.store import (
    LOCK_MILLISECONDS,
    Archive,
    PartitionMonth,
    RemovalBatch,
    drop_month,
    has_partitions,
    list_months,
    lock_exclusively,
    lock_partitions,
    record_events_kept_from,
)
from tocsin.store.tables import EPOCH, attempts, deliveries, events

BATCH = 100  # small: the responses of all attempts are written while other writers wait
_FINISHED = (DELIVERED, DEAD)
_OF_EVENT = ("id", "event_type", "timestamp", "data", "subject", "related", "context")
_OF_DELIVERY = ("id", "destination", "state", "remote_id", "remote_url", "reason")
_MOMENTS = ("created_at", "finished_at")


def remove_events(
    connection: Connection, since: datetime | None, before: datetime, archive: Archive | None
) -> RemovalBatch:
    """Remove the oldest events in a period whose deliveries are all delivered or dead.

    The events are archived first, in the same transaction. If the commit fails, they are therefore
    archived twice. Raises OSError if archiving fails.
    """
    lock_exclusively(connection, "the archive")
    removable = [events.c.timestamp >= (since or EPOCH), events.c.timestamp < before]
    if archive is None and has_partitions(connection):
        removable.append(_goes_by_row(list_months(connection), before))
    found = _finished_events(connection, removable)
    removed = _remove_finished(connection, found, archive)
    if removed:
        record_events_kept_from(connection, before)
    return RemovalBatch(removed, found[-1]["timestamp"] if len(found) == BATCH else None)


def _goes_by_row(months: Sequence[PartitionMonth], before: datetime) -> ColumnElement[bool]:
    """Return the condition for events to remove before their month can be dropped.

    These are events from before partitions were introduced, events in months that should have been
    dropped, and events that do not belong to any month's partition.
    """
    old = [month.holds(events.c.id, "evt") for month in months if month.end <= before]
    adopted = [month.holds(events.c.id, "evt") for month in months if month.start is None]
    beyond = [events.c.id >= first_id("evt", month.end) for month in months[-1:]]
    return or_(*old, *adopted, *beyond) if months else true()


def remove_strays(
    connection: Connection, month: PartitionMonth, before: datetime, archive: Archive | None
) -> int:
    """Remove old events that are not in the same month as all their deliveries; return how many.

    Such events would prevent the month from being dropped. They come from versions without
    partitions, which give a delivery the time of its routing instead of the time of its event.
    Raises OSError if archiving fails.
    """
    lock_exclusively(connection, "the archive")
    strays = {
        event_id
        for query in _list_stray_queries(month)
        for event_id in connection.scalars(query.limit(BATCH))
    }
    removable = [events.c.id.in_(strays), events.c.timestamp < before]
    return _remove_finished(connection, _finished_events(connection, removable), archive)


def remove_month(
    connection: Connection, month: PartitionMonth, before: datetime, archive: Archive | None
) -> bool:
    """Drop a month of events with their deliveries and attempts, and return whether it was dropped.

    All of its events must be old, and all deliveries must be delivered or dead. With an archive,
    the month must be empty. Raises DBAPIError if the tables stay locked for more than a moment.
    """
    lock_exclusively(connection, "the archive")
    if month not in list_months(connection):
        return False
    lock_partitions(connection, LOCK_MILLISECONDS)
    if any(
        connection.execute(query.limit(1)).first() is not None
        for query in _list_reasons(month, before, is_archived=archive is not None)
    ):
        return False
    drop_month(connection, month)
    record_events_kept_from(connection, before)
    return True


def _list_reasons(
    month: PartitionMonth, before: datetime, *, is_archived: bool
) -> Iterator[Select[Any]]:
    """Yield queries for rows that prevent a month from being dropped.

    Each query's order has an index in each partition, because others wait while the queries run.
    """
    of_month = month.holds(events.c.id, "evt")
    delivery_of_month = month.holds(deliveries.c.id, "dlv")
    unrouted = select(events.c.id).where(of_month, events.c.routed.is_(False))
    yield unrouted.order_by(events.c.id)
    young = select(events.c.timestamp).where(of_month, events.c.timestamp >= before)
    yield young.order_by(events.c.timestamp.desc())
    pending = select(deliveries.c.id).where(delivery_of_month, is_stored_as(PENDING))
    yield pending.order_by(deliveries.c.destination, deliveries.c.due_at)
    on_hold = select(deliveries.c.id).where(delivery_of_month, is_stored_as(ON_HOLD))
    yield on_hold.order_by(deliveries.c.state, deliveries.c.id)
    yield from _list_stray_queries(month)
    if is_archived:
        yield select(events.c.id).where(of_month).order_by(events.c.id)


def _list_stray_queries(month: PartitionMonth) -> list[Select[tuple[str]]]:
    """Return the queries for events that are not in the same month as all their deliveries.

    A single query would read every row.
    """
    event_id, id_ = deliveries.c.event_id, deliveries.c.id
    conditions = (
        (month.holds(id_, "dlv"), month.is_before(event_id, "evt")),
        (month.holds(id_, "dlv"), month.is_after(event_id, "evt")),
        (month.holds(event_id, "evt"), month.is_before(id_, "dlv")),
        (month.holds(event_id, "evt"), month.is_after(id_, "dlv")),
    )
    return [select(event_id).where(*both).order_by(event_id) for both in conditions]


def _remove_finished(
    connection: Connection, found: Sequence[RowMapping], archive: Archive | None
) -> int:
    of_event = _load_deliveries(connection, [event["id"] for event in found])
    old = [event for event in found if _is_finished(of_event[event["id"]])]
    if archive is not None:
        archive.add(list(_archive_lines(connection, old, of_event)), "deliveries")
    _remove(connection, [event["id"] for event in old])
    return len(old)


def _finished_events(
    connection: Connection, conditions: Iterable[ColumnElement[bool]]
) -> Sequence[RowMapping]:
    waiting = exists().where(
        deliveries.c.event_id == events.c.id, deliveries.c.state.not_in(_FINISHED)
    )
    query = (
        select(events)
        .where(*conditions, events.c.routed.is_(True), ~waiting)
        .order_by(events.c.timestamp)
        .limit(BATCH)
    )
    return connection.execute(query).mappings().all()


def _load_deliveries(
    connection: Connection, event_ids: Sequence[str]
) -> Mapping[str, list[RowMapping]]:
    """Return the deliveries of each event; lock them until the transaction ends."""
    query = (
        select(deliveries)
        .where(deliveries.c.event_id.in_(event_ids))
        .order_by(deliveries.c.id)
        .with_for_update()
    )
    of_event: dict[str, list[RowMapping]] = defaultdict(list)
    for row in connection.execute(query).mappings():
        of_event[row["event_id"]].append(row)
    return of_event


def _is_finished(its_deliveries: Sequence[RowMapping]) -> bool:
    return all(delivery["state"] in _FINISHED for delivery in its_deliveries)


def _archive_lines(
    connection: Connection,
    old: Sequence[RowMapping],
    of_event: Mapping[str, Sequence[RowMapping]],
) -> Iterator[tuple[date, dict[str, Any]]]:
    """Yield an archive line for each event, with the date of the file to write it to."""
    ids = [event["id"] for event in old]
    query = select(attempts).where(attempts.c.delivery_id.in_(_select_delivery_ids(ids)))
    tried: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in connection.execute(query.order_by(attempts.c.number)).mappings():
        tried[row["delivery_id"]].append(represent_attempt(row))
    for event in old:
        line = {name: event[name] for name in _OF_EVENT} | {
            "timestamp": isoformat(event["timestamp"]),
            "deliveries": [
                _archived(row) | {"attempts": tried[row["id"]]} for row in of_event[event["id"]]
            ],
        }
        yield event["timestamp"].date(), line


def _archived(row: RowMapping) -> dict[str, Any]:
    moments = {name: isoformat_or_none(row[name]) for name in _MOMENTS}
    return {name: row[name] for name in _OF_DELIVERY} | moments


def _select_delivery_ids(event_ids: Sequence[str]) -> Select[tuple[str]]:
    return select(deliveries.c.id).where(deliveries.c.event_id.in_(event_ids))


def _remove(connection: Connection, event_ids: Sequence[str]) -> None:
    theirs = attempts.c.delivery_id.in_(_select_delivery_ids(event_ids))
    connection.execute(delete(attempts).where(theirs))
    connection.execute(delete(deliveries).where(deliveries.c.event_id.in_(event_ids)))
    connection.execute(delete(events).where(events.c.id.in_(event_ids)))
