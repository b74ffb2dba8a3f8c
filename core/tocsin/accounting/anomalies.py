"""Anomalies: overdue work and other states that the records do not explain."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import (
    ColumnElement,
    CompoundSelect,
    Connection,
    Select,
    String,
    and_,
    cast,
    exists,
    literal,
    or_,
    select,
    union_all,
)

from tocsin.accounting.intervals import MAX_LISTED, Period
from tocsin.clock import isoformat
from tocsin.delivery import (
    ON_HOLD,
    PENDING,
    DestinationState,
    is_stored_as,
    load_applied_from,
    was_missed,
)
from tocsin.incidents import PUSH_STREAM, AlertDecision, IntakeBacklog, list_backlogs
from tocsin.model import EventType
from tocsin.store import (
    CLOCK_TOLERANCE,
    Epoch,
    describe_offset,
    find_troubled_nodes,
    load_clocks,
    load_database_time,
    load_epochs,
    load_events_kept_from,
)
from tocsin.store.tables import EPOCH, deliveries, destinations, events, incidents

TOLERANCE = timedelta(minutes=5)
"""How long work can be due before it counts as overdue."""

ANOMALY_KINDS = (
    "gap",
    "lost",
    "silent",
    "refused-push",
    "lost-push",
    "waiting-push",
    "no-event",
    "not-applied",
    "not-routed",
    "overdue",
    "no-destination",
    "rolled-back",
    "clock",
    "node",
)
"""The kinds of anomalies."""


def find_anomalies(
    connection: Connection, period: Period, now: datetime
) -> Iterator[dict[str, Any]]:
    """Yield the anomalies of a period, including events from before the period that are stuck.

    Otherwise, an older event that is stuck now would not appear in any report.
    """
    kept_from = load_events_kept_from(connection)  # older events may have been removed
    known = Period(max(period.since, kept_from), max(period.until, kept_from))
    for row in connection.execute(_select_without_event(known)):
        detail = "the incident should have caused an alert, but it does not have an event"
        yield represent_anomaly("no-event", f"incident:{row.number}", row.created_at, detail)
    for backlog in list_backlogs(connection):
        if backlog.since <= min(period.until, now - TOLERANCE):
            what = f"{backlog.provider}/{PUSH_STREAM}"
            detail = f"pushes were accepted but are not stored yet: {describe_backlog(backlog)}"
            yield represent_anomaly("waiting-push", what, backlog.since, detail)
    yield from _find_unrouted_events(connection, period, now)
    for row in connection.execute(_select_overdue(period, now)):
        detail = (
            f"the delivery is due and the destination {row.destination} is active, "
            "but there was no attempt"
        )
        yield represent_anomaly("overdue", row.id, row.due_at, detail)
    for row in connection.execute(_select_unprobed_destinations(now)):
        detail = "the destination is paused and has pending deliveries, but is no longer probed"
        yield represent_anomaly("overdue", f"destination:{row.name}", row.held_until, detail)
    for row in connection.execute(_select_without_destination(period)):
        detail = f"the destination {row.destination} does not exist"
        yield represent_anomaly("no-destination", row.id, row.created_at, detail)
    for epoch in load_epochs(connection):
        if epoch.reason is not None and epoch.started_at in period:
            what = f"epoch:{epoch.number}"
            yield represent_anomaly("rolled-back", what, epoch.started_at, _describe_loss(epoch))
    yield from _find_wrong_clocks(connection, now)
    yield from _find_stuck_nodes(connection, now)


def describe_backlog(backlog: IntakeBacklog) -> str:
    """Return the numbers of the pushes that wait in the intake."""
    return f"intake numbers {backlog.stored + 1} to {backlog.accepted}"


def _describe_loss(epoch: Epoch) -> str:
    """Return which incidents were lost when an epoch began, and why it began."""
    found, known = epoch.found_number or 0, epoch.known_number or 0
    if known <= found:
        return str(epoch.reason)
    return f"incidents {found + 1} to {known} were stored but are missing: {epoch.reason}"


def _find_wrong_clocks(connection: Connection, now: datetime) -> Iterator[dict[str, Any]]:
    """Yield the nodes whose clock currently differs from the database clock."""
    time = load_database_time(connection) or now
    for node in load_clocks(connection, time):
        if abs(node.offset) >= CLOCK_TOLERANCE:
            difference = describe_offset(node.offset)
            detail = f"compared with the database clock, the node's clock is {difference}"
            yield represent_anomaly("clock", f"node:{node.name}", time, detail)


def _find_stuck_nodes(connection: Connection, now: datetime) -> Iterator[dict[str, Any]]:
    """Yield the running nodes that are currently frozen or stuck."""
    for node in find_troubled_nodes(connection, now):
        silent = "no heartbeat: the process is frozen or cannot write to the database"
        stalled = f"stalled loops: {', '.join(node.stalled)}"
        detail = stalled if node.stalled else silent
        yield represent_anomaly("node", f"node:{node.name}", node.beat_at, detail)


def _find_unrouted_events(
    connection: Connection, period: Period, now: datetime
) -> Iterator[dict[str, Any]]:
    """Yield events that are not routed, or were routed while there were no destinations."""
    applied_from = load_applied_from(connection)
    if applied_from != EPOCH:
        detail = "no destination received the event, because no configuration had been applied"
        for row in connection.execute(_select_missed(period, applied_from)):
            yield represent_anomaly("not-applied", row.id, row.timestamp, detail)
    if applied_from is None:
        detail = "the event is waiting, because no configuration has been applied yet"
        for row in connection.execute(_select_unrouted(period, period.until)):
            yield represent_anomaly("not-applied", row.id, row.timestamp, detail)
        return
    for row in connection.execute(_select_unrouted(period, now - TOLERANCE)):
        reason = row.routing_error
        detail = f"the event is on hold: {reason}" if reason else "the event has not been routed"
        yield represent_anomaly("not-routed", row.id, row.timestamp, detail)


def represent_anomaly(kind: str, what: str, since: datetime | str, detail: str) -> dict[str, Any]:
    """Return the JSON of an anomaly."""
    moment = since if isinstance(since, str) else isoformat(since)
    return {"kind": kind, "what": what, "since": moment, "detail": detail}


def _select_without_event(period: Period) -> Select[Any]:
    """Return the query for incidents that caused an alert but do not have an event."""
    subject = literal("incident:") + cast(incidents.c.number, String)
    event = exists().where(
        events.c.subject == subject, events.c.event_type == EventType.INCIDENT_ALERT
    )
    return (
        select(incidents.c.number, incidents.c.created_at)
        .where(was_created_in(period), incidents.c.alert_outcome == AlertDecision.ALERTED, ~event)
        .order_by(incidents.c.updated_at, incidents.c.change)  # as the index has them
        .limit(MAX_LISTED)
    )


def was_created_in(period: Period) -> ColumnElement[bool]:
    """Return the condition for incidents that were first stored in the period."""
    return and_(
        incidents.c.updated_at > period.since,  # implied by the next condition, but indexed
        incidents.c.created_at > period.since,
        incidents.c.created_at <= period.until,
    )


def _select_missed(period: Period, applied_from: datetime | None) -> Select[Any]:
    """Return the query for events that were routed before any configuration was applied."""
    return (
        select(events.c.id, events.c.timestamp)
        .where(events.c.timestamp <= period.until, was_missed(applied_from))
        .order_by(events.c.timestamp)
        .limit(MAX_LISTED)
    )


def _select_unrouted(period: Period, latest: datetime) -> Select[Any]:
    """Return the query for unrouted events that are on hold or older than `latest`."""
    is_overdue = or_(events.c.timestamp <= latest, events.c.routing_error.is_not(None))
    return (
        select(events.c.id, events.c.timestamp, events.c.routing_error)
        .where(events.c.routed.is_(False), events.c.timestamp <= period.until, is_overdue)
        .order_by(events.c.id)
        .limit(MAX_LISTED)
    )


def _select_overdue(period: Period, now: datetime) -> Select[Any]:
    """Return the query for deliveries that could have been attempted but were not.

    A delivery is not overdue while it waits for an older delivery with the same subject or for its
    destination's rate limit. A lease moves `due_at` to its end, so an overdue delivery does not
    have a valid lease.
    """
    latest = now - TOLERANCE
    older = deliveries.alias("older")
    is_behind = exists().where(
        older.c.destination == deliveries.c.destination,
        older.c.subject == deliveries.c.subject,
        is_stored_as(PENDING, older),
        older.c.id < deliveries.c.id,
    )
    return (
        select(deliveries.c.id, deliveries.c.destination, deliveries.c.due_at)
        .join(destinations, destinations.c.name == deliveries.c.destination)
        .where(
            destinations.c.state == DestinationState.ACTIVE,
            or_(destinations.c.held_until.is_(None), destinations.c.held_until < latest),
            or_(destinations.c.free_at.is_(None), destinations.c.free_at < latest),
            is_stored_as(PENDING),
            deliveries.c.due_at < latest,
            deliveries.c.created_at <= period.until,
            ~is_behind,
        )
        .order_by(deliveries.c.due_at)
        .limit(MAX_LISTED)
    )


def _select_unprobed_destinations(now: datetime) -> Select[Any]:
    """Return the query for paused destinations whose probe is overdue."""
    latest = now - TOLERANCE
    waits = exists().where(deliveries.c.destination == destinations.c.name, is_stored_as(PENDING))
    return select(destinations.c.name, destinations.c.held_until).where(
        destinations.c.state == DestinationState.PAUSED,
        destinations.c.held_until < latest,
        or_(destinations.c.probing_until.is_(None), destinations.c.probing_until < latest),
        waits,
    )


def _select_without_destination(period: Period) -> CompoundSelect[Any]:
    """Return the query for deliveries to a destination that does not exist."""
    d = deliveries.c
    is_there = exists().where(destinations.c.name == d.destination)
    waiting = select(d.id, d.destination, d.created_at).where(
        d.created_at <= period.until, ~is_there
    )
    states = (waiting.where(is_stored_as(state)) for state in (PENDING, ON_HOLD))
    return union_all(*states).limit(MAX_LISTED)
