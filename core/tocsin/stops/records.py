"""Records of emergency stops, which stay after their end to explain what was not read or sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import islice
from operator import itemgetter
from typing import Any, Self

from sqlalchemy import Connection, RowMapping, Select, insert, select, update

from tocsin import audit
from tocsin.clock import isoformat, isoformat_or_none
from tocsin.errors import InvalidInputError
from tocsin.store import announce, lock_exclusively
from tocsin.store.tables import emergency_stops

TOPIC = "stops"
"""Topic that announces stops that begin or end."""
MAX_DURATION = timedelta(days=366)
NOBODY = "system"
"""Who ends a stop if no person does, as at its time."""


class StopKind(StrEnum):
    """Kind of stopped object."""

    DESTINATION = "destination"
    PROVIDER = "provider"


@dataclass(frozen=True, slots=True)
class StopOrder:
    """A stop as requested."""

    by: str
    reason: str | None = None
    until: datetime | None = None
    """End of the stop; None until somebody ends it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmergencyStop:
    """A stop of a destination or a provider."""

    kind: StopKind
    name: str
    by: str
    reason: str | None
    since: datetime
    until: datetime | None
    ended_at: datetime | None
    ended_by: str | None

    @classmethod
    def from_row(cls, row: RowMapping) -> Self:
        """Return the stop in a row of the table `emergency_stops`."""
        return cls(
            kind=StopKind(row["kind"]),
            name=row["name"],
            by=row["stopped_by"],
            reason=row["reason"],
            since=row["started_at"],
            until=row["ends_at"],
            ended_at=row["ended_at"],
            ended_by=row["ended_by"],
        )

    def is_over(self, now: datetime) -> bool:
        """Return whether the end of the stop has come."""
        return self.until is not None and self.until <= now

    def describe(self) -> str:
        """Return who stopped it, until when and why."""
        until = (
            "until someone enables it" if self.until is None else f"until {isoformat(self.until)}"
        )
        reason = f" (reason: {self.reason})" if self.reason else ""
        return f"by {self.by}{reason}, {until}"

    def represent(self) -> dict[str, Any]:
        """Return the stop as the JSON of what it stops."""
        return {
            "by": self.by,
            "reason": self.reason,
            "since": isoformat(self.since),
            "until": isoformat_or_none(self.until),
        }

    def represent_history(self) -> dict[str, Any]:
        """Return the JSON of the stop in an account, with what it stops and its end."""
        return {
            "kind": self.kind,
            "name": self.name,
            **self.represent(),
            "ended_at": isoformat_or_none(self.ended_at),
            "ended_by": self.ended_by,
        }


def begin_stop(
    connection: Connection, kind: StopKind, name: str, order: StopOrder, now: datetime
) -> EmergencyStop | None:
    """Begin a stop, in place of the current one, and return it; None if nothing changes.

    Raises:
        InvalidInputError: The end is not in the future, or too far.
    """
    if order.until is not None and not now < order.until <= now + MAX_DURATION:
        raise InvalidInputError(
            f"use a time in the future, at most {MAX_DURATION.days} days from now"
        )
    lock_exclusively(connection, f"stops of {kind} {name}")
    current = _load_current(connection, kind, name)
    if current is not None:
        if (current.by, current.reason, current.until) == (order.by, order.reason, order.until):
            return None
        _end(connection, kind, name, order.by, now)
    row = {
        "kind": kind,
        "name": name,
        "stopped_by": order.by,
        "reason": order.reason,
        "started_at": now,
        "ends_at": order.until,
    }
    connection.execute(insert(emergency_stops).values(row))
    announce(connection, TOPIC)
    return _load_current(connection, kind, name)


def end_stop(connection: Connection, kind: StopKind, name: str, by: str, now: datetime) -> bool:
    """End the current stop; return whether there was one."""
    return _end(connection, kind, name, by, now)


def end_due_stops(connection: Connection, kind: StopKind, now: datetime) -> list[EmergencyStop]:
    """End the stops whose time has come, and return them; the audit log names each."""
    c = emergency_stops.c
    due = _select_current(kind).where(c.ends_at <= now)
    stops = [EmergencyStop.from_row(row) for row in connection.execute(due).mappings()]
    ended = [stop for stop in stops if _end(connection, kind, stop.name, NOBODY, now)]
    audit.record(connection, *(_audit_entry(stop, now) for stop in ended))
    return ended


def find_stop(
    connection: Connection, kind: StopKind, name: str, now: datetime
) -> EmergencyStop | None:
    """Return the stop that is in force; None without one, or after its time."""
    stop = _load_current(connection, kind, name)
    return None if stop is None or stop.is_over(now) else stop


def load_stops(
    connection: Connection, kind: StopKind, now: datetime
) -> Mapping[str, EmergencyStop]:
    """Return the stops that are in force, by the name of what they stop."""
    rows = connection.execute(_select_current(kind)).mappings()
    stops = (EmergencyStop.from_row(row) for row in rows)
    return {stop.name: stop for stop in stops if not stop.is_over(now)}


def list_stops(
    connection: Connection, since: datetime, until: datetime | None, limit: int
) -> list[EmergencyStop]:
    """Return the stops that were in force in a period, the newest first, up to a limit.

    Without `until`, the period has no end.
    """
    c = emergency_stops.c
    ended = select(emergency_stops).where(c.ended_at > since).order_by(c.ended_at.desc())
    queries = [*(_select_current(kind) for kind in StopKind), ended.limit(limit)]
    if until is not None:
        queries = [query.where(c.started_at <= until) for query in queries]
    rows = [row for query in queries for row in connection.execute(query).mappings()]
    rows.sort(key=itemgetter("id"), reverse=True)
    return [EmergencyStop.from_row(row) for row in islice(rows, limit)]


def _select_current(kind: StopKind) -> Select[Any]:
    c = emergency_stops.c
    return select(emergency_stops).where(c.ended_at.is_(None), c.kind == kind).order_by(c.name)


def _load_current(connection: Connection, kind: StopKind, name: str) -> EmergencyStop | None:
    query = _select_current(kind).where(emergency_stops.c.name == name)
    row = connection.execute(query).mappings().one_or_none()
    return None if row is None else EmergencyStop.from_row(row)


def _end(connection: Connection, kind: StopKind, name: str, by: str, now: datetime) -> bool:
    c = emergency_stops.c
    ending = update(emergency_stops).where(c.ended_at.is_(None), c.kind == kind, c.name == name)
    ended = connection.execute(ending.values(ended_at=now, ended_by=by)).rowcount
    if ended:
        announce(connection, TOPIC)
    return bool(ended)


def _audit_entry(stop: EmergencyStop, now: datetime) -> audit.AuditRecord:
    return audit.AuditRecord(
        at=now,
        actor=NOBODY,
        action=f"{stop.kind}.enable",
        target=f"{stop.kind}:{stop.name}",
        address="",
        request_id="",
        details={"stop": stop.represent()},
    )
