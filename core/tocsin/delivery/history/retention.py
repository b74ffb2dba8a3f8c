"""Removal of old events with their deliveries, optionally archived first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, Select, delete, exists, select

from tocsin.clock import isoformat, isoformat_or_none
from tocsin.delivery.history.repository import represent_attempt
from tocsin.delivery.queue.states import DEAD, DELIVERED
from tocsin.store import Archive, RemovalBatch, lock_exclusively, record_events_kept_from
from tocsin.store.tables import EPOCH, attempts, deliveries, events

BATCH = 100  # small: the responses of all attempts are written while other writers wait
_FINISHED = (DELIVERED, DEAD)
_OF_EVENT = ("id", "event_type", "timestamp", "data", "subject", "related", "context")
_OF_DELIVERY = ("id", "destination", "state", "remote_id", "remote_url", "reason")
_MOMENTS = ("created_at", "finished_at")


def remove_events(
    connection: Connection, since: datetime | None, before: datetime, archive: Archive | None
) -> RemovalBatch:
    """Remove the oldest events of a period whose deliveries are all delivered or dead.

    They are archived first, in this transaction: if its commit fails, they are archived twice.
    Raises OSError if archiving fails.
    """
    lock_exclusively(connection, "the archive")
    found = _finished_events(connection, since or EPOCH, before)
    of_event = _load_deliveries(connection, [event["id"] for event in found])
    old = [event for event in found if _is_finished(of_event[event["id"]])]
    if archive is not None:
        archive.add(list(_archive_lines(connection, old, of_event)), "deliveries")
    _remove(connection, [event["id"] for event in old])
    if old:
        record_events_kept_from(connection, before)
    return RemovalBatch(len(old), found[-1]["timestamp"] if len(found) == BATCH else None)


def _finished_events(
    connection: Connection, since: datetime, before: datetime
) -> Sequence[RowMapping]:
    waiting = exists().where(
        deliveries.c.event_id == events.c.id, deliveries.c.state.not_in(_FINISHED)
    )
    query = (
        select(events)
        .where(events.c.timestamp >= since, events.c.timestamp < before)
        .where(events.c.routed.is_(True), ~waiting)
        .order_by(events.c.timestamp)
        .limit(BATCH)
    )
    return connection.execute(query).mappings().all()


def _load_deliveries(
    connection: Connection, event_ids: Sequence[str]
) -> Mapping[str, list[RowMapping]]:
    """Return the deliveries of each event, locked until the transaction ends."""
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
    """Yield a line for each event, with the day of its file."""
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
