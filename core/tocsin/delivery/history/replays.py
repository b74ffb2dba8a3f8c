"""Bulk replay jobs.

A job covers the deliveries that match when it is created, and that still match when it is their
turn.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Self

from sqlalchemy import ColumnElement, Connection, RowMapping, func, insert, select, update

from tocsin.clock import isoformat, isoformat_or_none
from tocsin.delivery.destinations.repository import DestinationState
from tocsin.delivery.history.filters import SOURCE, DeliveryFilter, require_destination
from tocsin.delivery.queue.states import DeliveryState, is_stored_as
from tocsin.identifiers import new_id
from tocsin.model import DeliveryType
from tocsin.store import announce
from tocsin.store.tables import EPOCH, deliveries, destinations, replays

REPLAYS = "replays"
"""Topic that announces waiting replays."""


class ReplayState(StrEnum):
    """State of a bulk replay."""

    RUNNING = "running"
    COMPLETED = "completed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayScope:
    """The deliveries that a replay covers."""

    state: DeliveryState
    wanted: DeliveryFilter
    last: str
    """ID of the last delivery that matched when the replay was created, or empty."""
    finished_by: datetime
    """Latest `finished_at` of these deliveries; the replay skips deliveries that finish later."""

    def conditions(self) -> list[ColumnElement[bool]]:
        """Return the conditions on rows of `SOURCE`."""
        came_to_rest = deliveries.c.finished_at <= self.finished_by
        return [came_to_rest, *replayable_condition(self.state, self.wanted)]

    def to_json(self) -> dict[str, Any]:
        """Return the stored form."""
        return {
            "state": self.state,
            "destination": self.wanted.destination,
            "event_type": self.wanted.event_type,
            "since": _format_moment(self.wanted.since),
            "until": _format_moment(self.wanted.until),
            "last": self.last,
            "finished_by": self.finished_by.isoformat(),
        }

    @classmethod
    def of_json(cls, stored: dict[str, Any]) -> Self:
        """Return the scope from its stored form."""
        kind = stored["event_type"]
        wanted = DeliveryFilter(
            destination=stored["destination"],
            event_type=None if kind is None else DeliveryType(kind),
            since=_parse_moment(stored["since"]),
            until=_parse_moment(stored["until"]),
        )
        finished_by = datetime.fromisoformat(stored["finished_by"])
        state = DeliveryState.parse(stored["state"])
        return cls(state=state, wanted=wanted, last=stored["last"], finished_by=finished_by)


@dataclass(frozen=True, slots=True)
class ReplayExtent:
    """Current extent of a replay."""

    scope: ReplayScope
    total: int
    first: str
    """ID of the first delivery that matches, or empty."""


def replayable_condition(state: DeliveryState, wanted: DeliveryFilter) -> list[ColumnElement[bool]]:
    """Return the conditions on rows of `SOURCE` for a replay."""
    is_there = func.coalesce(destinations.c.state, "") != DestinationState.DELETED.value
    return [is_stored_as(state), is_there, *wanted.conditions()]


def measure_replay(
    connection: Connection, state: DeliveryState, wanted: DeliveryFilter
) -> ReplayExtent:
    """Return the current extent of a replay; raises NoSuchDestinationError."""
    if wanted.destination is not None:
        require_destination(connection, wanted.destination)
    first, last = func.min(deliveries.c.id), func.max(deliveries.c.id)
    query = (
        select(func.count(), first, last, func.max(deliveries.c.finished_at))
        .select_from(SOURCE)
        .where(*replayable_condition(state, wanted))
    )
    total, first_id, last_id, finished_by = connection.execute(query).one()
    scope = ReplayScope(
        state=state, wanted=wanted, last=last_id or "", finished_by=finished_by or EPOCH
    )
    return ReplayExtent(scope, total, first_id or "")


def create_replay(
    connection: Connection, extent: ReplayExtent, by: str, now: datetime
) -> dict[str, Any]:
    """Store a replay, which the nodes then run, and return it as shown."""
    row = {
        "id": new_id("rpl"),
        "filter": extent.scope.to_json(),
        "state": ReplayState.RUNNING,
        "total": extent.total,
        "replayed": 0,
        "position": extent.first[:-1],  # sorts before the first, with nothing in between
        "created_by": by,
        "created_at": now,
        "updated_at": now,
        "finished_at": None,
    }
    connection.execute(insert(replays).values(row))
    announce(connection, REPLAYS)
    return _represent(row)


def cancel_replay(connection: Connection, replay_id: str, now: datetime) -> bool:
    """Stop a replay where it is, and return whether it was running."""
    running = update(replays).where(
        replays.c.id == replay_id, replays.c.state == ReplayState.RUNNING
    )
    ended = {"state": ReplayState.CANCELLED, "updated_at": now, "finished_at": now}
    return bool(connection.execute(running.values(ended)).rowcount)


def load_replay(connection: Connection, replay_id: str) -> dict[str, Any] | None:
    """Return a replay as shown; None if no replay has this ID."""
    query = select(replays).where(replays.c.id == replay_id)
    row = connection.execute(query).mappings().one_or_none()
    return None if row is None else _represent(row)


@dataclass(frozen=True, slots=True)
class ReplayPage:
    """One page of replays, newest first."""

    replays: list[dict[str, Any]]
    total: int
    next: str | None
    """Value of `before` for the next page; None on the last page."""


def list_replays(connection: Connection, *, limit: int, before: str | None = None) -> ReplayPage:
    """Return one page of replays, newest first; `before` continues an earlier page."""
    page = select(replays).order_by(replays.c.id.desc()).limit(limit + 1)
    if before is not None:
        page = page.where(replays.c.id < before)
    found = connection.execute(page).mappings().all()
    total = connection.scalars(select(func.count()).select_from(replays)).one()
    following = found[limit - 1]["id"] if len(found) > limit else None
    return ReplayPage([_represent(row) for row in found[:limit]], total, following)


def _represent(row: RowMapping | dict[str, Any]) -> dict[str, Any]:
    asked = row["filter"]
    moments = {name: isoformat_or_none(_parse_moment(asked[name])) for name in ("since", "until")}
    names = ("id", "state", "total", "replayed", "created_by")
    return {
        **{name: row[name] for name in names},
        "filter": {
            "state": DeliveryState.parse(asked["state"]),
            "destination": asked["destination"],
            "event_type": asked["event_type"],
            **moments,
        },
        "created_at": isoformat(row["created_at"]),
        "updated_at": isoformat(row["updated_at"]),
        "finished_at": isoformat_or_none(row["finished_at"]),
    }


def _format_moment(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _parse_moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
