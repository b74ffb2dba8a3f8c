"""Hold on routing until a configuration has been applied.

With a shared database, only `tocsin apply` stores the destinations from `plugins.toml`. If Tocsin
routed an event earlier, it would not find any destination, and would never send the event.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import structlog
from sqlalchemy import ColumnElement, Connection, and_, exists, func, select, update

from tocsin.events import EVENTS
from tocsin.store import announce, build_insert
from tocsin.store.tables import EPOCH, deliveries, events, sequences

_NOT_APPLIED = (
    "no configuration has been applied yet, so events wait and are not lost; run `tocsin apply`"
)
_APPLIED_FROM = "configuration_applied_from"
_MICROSECOND = timedelta(microseconds=1)
_log = structlog.get_logger()


def load_applied_from(connection: Connection) -> datetime | None:
    """Return when a configuration was first applied, or None if none has been applied yet.

    Earlier events may have been routed while there were no destinations. If there are no such
    events, the function returns the Unix epoch.
    """
    query = select(sequences.c.value).where(sequences.c.name == _APPLIED_FROM)
    value = connection.execute(query).scalar()
    return None if value is None else EPOCH + value * _MICROSECOND


def find_routing_hold(connection: Connection) -> str | None:
    """Return why events are waiting and what to do, or None if a configuration was applied.

    A configuration without destinations also counts.
    """
    return _NOT_APPLIED if load_applied_from(connection) is None else None


def record_application(connection: Connection) -> None:
    """Record that a configuration was applied, unless one is recorded; routing then begins."""
    if load_applied_from(connection) is None:
        missed = select(events.c.timestamp).where(was_missed(None))
        latest = connection.scalar(missed.order_by(events.c.timestamp.desc()).limit(1))
        moment = EPOCH if latest is None else latest + _MICROSECOND
        _store(connection, moment)
        announce(connection, EVENTS)


def was_missed(applied_from: datetime | None) -> ColumnElement[bool]:
    """Return the condition for events that were routed before any configuration was applied."""
    delivery = exists().where(deliveries.c.event_id == events.c.id)
    is_suppressed = events.c.suppressed_by.is_not(None)
    routed = and_(events.c.routed.is_(True), ~is_suppressed, ~delivery)
    return routed if applied_from is None else and_(events.c.timestamp < applied_from, routed)


def count_missed_events(connection: Connection) -> int:
    """Return the number of missed events."""
    applied_from = load_applied_from(connection)
    if applied_from == EPOCH:
        return 0
    counted = select(func.count()).select_from(events).where(was_missed(applied_from))
    return connection.scalars(counted).one()


def release_missed_events(connection: Connection) -> int:
    """Route missed events again, by the applied configuration, and return their number."""
    missed = update(events).where(was_missed(load_applied_from(connection)))
    count: int = connection.execute(missed.values(routed=False)).rowcount
    _store(connection, EPOCH)
    announce(connection, EVENTS)
    return count


def _store(connection: Connection, moment: datetime) -> None:
    value = (moment - EPOCH) // _MICROSECOND
    statement = build_insert(connection, sequences).values(name=_APPLIED_FROM, value=value)
    connection.execute(
        statement.on_conflict_do_update(index_elements=["name"], set_={"value": value})
    )


def log_application(*, before: bool | None, now: bool) -> None:
    """Log when routing starts or stops waiting for a configuration."""
    if now and before is False:
        _log.info("configuration applied; routing waiting events")
    elif not now and before is None:
        advice = "run `tocsin apply`; until then, events wait and are not lost"
        _log.warning("routing on hold: no configuration has been applied yet", advice=advice)
