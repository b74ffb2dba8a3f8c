"""Outbox of events and followed changes, and the notifiers that wake its readers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Integer,
    RowMapping,
    Select,
    bindparam,
    func,
    insert,
    literal_column,
    or_,
    select,
    text,
    update,
)

from tocsin.loops import wait_for_event
from tocsin.model import ChangeType, Event, parse_type
from tocsin.registry import ManagedBy
from tocsin.store import (
    EPOCH_MEMBER,
    BulkStatement,
    Row,
    announce,
    clean_text,
    is_in,
    load_epoch_number,
)
from tocsin.store.tables import destinations, events
from tocsin.tracing import TRACEPARENT, build_headers, note_event

EVENTS = "events"
"""The topic of events that are not routed yet."""
_MAX_REASON = 1_000  # characters

RESTORED = "restored from the backup"
"""The start of the reason why what was pending in a backup is on hold."""
_IS_UNROUTED = events.c.routed.is_(False) & events.c.routing_error.is_(None)
SHARDS = 16
"""The groups of subjects whose events several nodes route at once."""
# Everyone shares the lock of all shards, which excludes those who lock it alone
_LOCK_SHARDS = text(
    f"""
    SELECT pg_advisory_xact_lock_shared(hashtextextended('routing', 0))::text
    UNION ALL SELECT pg_advisory_xact_lock(hashtextextended('routing ' || shard, 0))::text FROM (
        SELECT DISTINCT hashtextextended(subject, 0) & {SHARDS - 1} AS shard
        FROM unnest(CAST(:subjects AS text[])) AS subject ORDER BY shard
    ) AS shards
    """  # noqa: S608 - a constant
)

_FOLLOW_SETTING = "follow_changes"
_HOOKS = {
    "tocsin_incident_changed": ChangeType.INCIDENT_CHANGED,
    "tocsin_investigation_finished": ChangeType.INVESTIGATION_FINISHED,
}
_SETTINGS = select(destinations.c.settings, destinations.c.managed_by).where(
    destinations.c.state != "deleted",
    or_(destinations.c.reason.is_(None), destinations.c.reason != "removed"),
)


@dataclass(frozen=True, slots=True)
class EventShare:
    """The events that one of several nodes routes."""

    shards: tuple[int, ...]
    until: str
    """Events of other shards are included if their IDs are before this one; empty for none."""


def _build_share() -> ColumnElement[bool]:
    """Return the condition of the events of a share, on PostgreSQL."""
    hashed = func.hashtextextended(events.c.subject, literal_column("0"), type_=Integer())
    shard = hashed.op("&")(literal_column(str(SHARDS - 1)))
    return or_(is_in(shard, "shards"), events.c.id < bindparam("until"))


# Without statistics, PostgreSQL takes a null for rare, and expects to read a whole month until it
# has found enough of these events. It takes a third of the rows for below zero.
_WITHOUT_ERROR = func.coalesce(func.length(events.c.routing_error), -1) < literal_column("0")


def _select_unrouted(*, whole: bool, shared: bool = False) -> Select[Any]:
    columns = (
        events.c.id,
        events.c.event_type,
        events.c.timestamp,
        events.c.data,
        events.c.subject,
        events.c.related,
        *((events.c.context,) if whole else ()),
    )
    conditions = [events.c.routed.is_(False), _WITHOUT_ERROR]
    if shared:
        conditions.append(_build_share())
    return select(*columns).where(*conditions).order_by(events.c.id).limit(bindparam("most"))


UNROUTED = _select_unrouted(whole=False)
_UNROUTED = {
    (whole, shared): _select_unrouted(whole=whole, shared=shared)
    for whole in (False, True)
    for shared in (False, True)
}


def emit_events(connection: Connection, new_events: Sequence[Event]) -> None:
    """Store events in this transaction; they are routed once it is committed.

    The context of each gets the `epoch` of the database and, while tracing is on, the current
    span as `traceparent`.
    """
    if new_events:
        common: dict[str, Any] = {**build_headers()}
        if connection.dialect.name == "sqlite":  # PostgreSQL does so in the insert
            common["epoch"] = load_epoch_number(connection)
        _INSERT.run(connection, [_build_row(event, common) for event in new_events])
        for event in new_events:
            note_event("event stored", {"event_id": event.id, "subject": event.subject})
        announce(connection, EVENTS)


_INSERT = BulkStatement(
    insert(events),
    ("id", "event_type", "timestamp", "data", "subject", "related", "context", "routed"),
    added={"context": EPOCH_MEMBER},
)


def _build_row(event: Event, common: Mapping[str, Any]) -> Row:
    context = {**event.context, **common}
    facts = (event.id, event.event_type.value, event.timestamp, dict(event.data), event.subject)
    return (*facts, list(event.related), context, False)


def list_followed(settings: Mapping[str, Any], managed_by: str) -> frozenset[ChangeType]:
    """Return the changes that a destination follows, given its settings as they are stored.

    Observer plugins follow what they have hooks for; others may have any setting called `hooks`.
    """
    if managed_by == ManagedBy.PLUGIN:
        return frozenset(_HOOKS[hook] for hook in settings.get("hooks", ()) if hook in _HOOKS)
    return frozenset(ChangeType if settings.get(_FOLLOW_SETTING) is True else ())


def emit_changes(
    connection: Connection, kind: ChangeType, build: Callable[[], Iterable[Event]]
) -> Sequence[Event]:
    """Store the changes that `build` returns in this transaction, and return them.

    Nothing is built or stored unless a plugin or a destination follows this kind of change now.
    """
    stored = connection.execute(_SETTINGS)
    if not any(kind in list_followed(row.settings, row.managed_by) for row in stored):
        return ()
    changes = list(build())
    emit_events(connection, changes)
    return changes


@dataclass(frozen=True, slots=True)
class UnroutedEvents:
    """The oldest events that are not routed yet."""

    events: list[Event]
    unreadable: dict[str, str] = field(default_factory=dict)
    """Reasons by ID of events among them whose rows cannot be read."""


def load_unrouted(
    connection: Connection, limit: int, *, whole: bool = True, share: EventShare | None = None
) -> UnroutedEvents:
    """Return the oldest events that are not routed yet, all or those of a share.

    Unless `whole`, the events lack `context`, which is most of their size.
    """
    statement = _UNROUTED[whole, share is not None]
    parameters: dict[str, Any] = {"most": limit}
    if share is not None:
        parameters |= {"shards": share.shards, "until": share.until}
    try:
        rows = connection.execute(statement, parameters).mappings()
        return UnroutedEvents([parse_event_row(row) for row in rows])
    except (ValueError, TypeError):  # of one row; such as an event type of a later version
        ids = connection.execute(statement.with_only_columns(events.c.id), parameters)
        return _load_readable(connection, ids.scalars().all())


def _load_readable(connection: Connection, ids: Iterable[str]) -> UnroutedEvents:
    found = UnroutedEvents([])
    for id_ in ids:
        try:
            row = connection.execute(select(events).where(events.c.id == id_)).mappings().one()
            found.events.append(parse_event_row(row))
        except (ValueError, TypeError) as error:
            found.unreadable[id_] = f"the stored event cannot be read: {error}"
    return found


def find_still_unrouted(connection: Connection, ids: Iterable[str]) -> frozenset[str]:
    """Return those of these events that nobody has routed meanwhile."""
    return frozenset(connection.scalars(_STILL_UNROUTED, {"ids": list(ids)}))


def find_unrouted_before(
    connection: Connection, subjects: Iterable[str], id_: str
) -> list[tuple[str, str]]:
    """Return ID and subject of the unrouted events of these subjects before an event."""
    query = _BEFORE, {"subjects": sorted(subjects), "id": id_}
    return [(row.id, row.subject) for row in connection.execute(*query)]


def lock_subjects(connection: Connection, subjects: Collection[str]) -> None:
    """Lock the shards of these subjects until this transaction ends, in the same order everywhere.

    SQLite has a single writing transaction anyway.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(_LOCK_SHARDS, {"subjects": sorted(subjects)})


def hold_events(connection: Connection, reasons: Mapping[str, str]) -> None:
    """Put events on hold that cannot be routed, by ID with the reason."""
    for id_, reason in reasons.items():
        error = clean_text(reason, _MAX_REASON)
        connection.execute(update(events).where(events.c.id == id_).values(routing_error=error))


def hold_unrouted_events(connection: Connection, reason: str) -> int:
    """Put all events on hold that are not routed, and return their number."""
    unrouted = update(events).where(events.c.routed.is_(False))
    return int(connection.execute(unrouted.values(routing_error=reason)).rowcount)


def retry_routing(connection: Connection) -> int:
    """Make the events on hold unrouted again, but for restored ones, and return their number."""
    return _reroute(connection, ~events.c.routing_error.startswith(RESTORED))


def release_restored_events(connection: Connection) -> int:
    """Make the events unrouted again that a restore put on hold, and return their number."""
    return _reroute(connection, events.c.routing_error.startswith(RESTORED))


def _reroute(connection: Connection, condition: ColumnElement[bool]) -> int:
    held = update(events).where(events.c.routed.is_(False), condition)
    moved = int(connection.execute(held.values(routing_error=None)).rowcount)
    if moved:
        announce(connection, EVENTS)
    return moved


def mark_routed(connection: Connection, routed: Sequence[Event]) -> frozenset[str]:
    """Mark events as routed, and return the IDs of those that nobody has routed meanwhile."""
    if not routed:
        return frozenset()
    return frozenset(connection.scalars(_MARK_ROUTED, {"ids": [event.id for event in routed]}))


_STILL_UNROUTED = select(events.c.id).where(is_in(events.c.id, "ids"), _IS_UNROUTED)
_BEFORE = select(events.c.id, events.c.subject).where(
    _IS_UNROUTED, is_in(events.c.subject, "subjects"), events.c.id < bindparam("id")
)
_MARK_ROUTED = (
    update(events)
    .where(is_in(events.c.id, "ids"), _IS_UNROUTED)
    .values(routed=True)
    .returning(events.c.id)
)


def read_traceparent(event: Event) -> str | None:
    """Return the span in which an event was stored, None if tracing was off."""
    found = event.context.get(TRACEPARENT)
    return found if isinstance(found, str) else None


def parse_event_row(row: RowMapping) -> Event:
    """Return the event in a row of the table `events`."""
    return Event(
        id=row["id"],
        event_type=parse_type(row["event_type"]),
        timestamp=row["timestamp"],
        data=row["data"],
        subject=row["subject"],
        related=tuple(row.get("related", ())),
        context=row.get("context", {}),
    )


class Notifier:
    """Wakes one waiting task; a notification that nobody waits for wakes the next one to wait."""

    def __init__(self) -> None:
        self._notified = asyncio.Event()

    def notify(self) -> None:
        """Wake the waiting task, or the next one to wait."""
        self._notified.set()

    async def wait(self, at_most: timedelta) -> None:
        """Return when notified, or after `at_most`, since other nodes may take the same work."""
        if await wait_for_event(self._notified, at_most.total_seconds()):
            self._notified.clear()


class Notifiers:
    """One notifier per topic, for the work of this node and for announcements of other nodes."""

    def __init__(self) -> None:
        self._notifiers: dict[str, Notifier] = {}

    def __getitem__(self, topic: str) -> Notifier:
        """Return the notifier of a topic."""
        return self._notifiers.setdefault(topic, Notifier())

    def notify_topic(self, topic: str) -> None:
        """Notify an announced topic; an empty topic notifies all, since some may be missing."""
        for notifier in [self[topic]] if topic else list(self._notifiers.values()):
            notifier.notify()
