"""Assignment of shards to routing nodes, so that they rarely work on the same events."""

from __future__ import annotations

from datetime import datetime, timedelta
from time import monotonic

from sqlalchemy import Connection

from tocsin.events import SHARDS, EventShare, find_unrouted_before
from tocsin.identifiers import first_id
from tocsin.model import Event
from tocsin.store import Database, find_nodes_with_role

_REFRESH_SECONDS = 2.0
_PATIENCE = timedelta(seconds=10)
"""The age from which any node routes an event, because its own may be busy or frozen."""
_LOOK_AROUND_SECONDS = 5.0


class ShardAssignment:
    """The shards of one node. They only save work; locks keep events in order on all nodes."""

    def __init__(self, database: Database, node: int, role: str) -> None:
        self._database = database
        self._node = node
        self._role = role
        self._shards: tuple[int, ...] | None = None
        self._refresh_at = 0.0
        self._look_around_at = 0.0

    async def find(self, now: datetime, *, is_behind: bool) -> EventShare | None:
        """Return the events that this node should route next; None for all of them.

        A node that `is_behind` with its own shards checks other shards only every few seconds.
        """
        moment = monotonic()
        if moment >= self._refresh_at:
            self._refresh_at = moment + _REFRESH_SECONDS
            self._shards = await self._load(now)
        if self._shards is None:
            return None
        if is_behind and moment < self._look_around_at:
            return EventShare(self._shards, "")
        self._look_around_at = moment + _LOOK_AROUND_SECONDS
        return EventShare(self._shards, first_id("evt", now - _PATIENCE))

    async def _load(self, now: datetime) -> tuple[int, ...] | None:
        if not self._database.is_shared:
            return None
        nodes = await self._database.read(find_nodes_with_role, self._role, now)
        ranks = sorted({*nodes, self._node})
        if len(ranks) == 1:
            return None
        return tuple(range(ranks.index(self._node), SHARDS, len(ranks)))


def find_ready(connection: Connection, routed: list[Event]) -> list[Event]:
    """Return the events before the first one that has to wait for events on related subjects.

    These other events belong to other shards, and another node is about to route them.
    """
    related = {subject for event in routed for subject in event.related}
    if not related:
        return routed
    ours = {event.id for event in routed}
    others = [
        (id_, subject)
        for id_, subject in find_unrouted_before(connection, related, routed[-1].id)
        if id_ not in ours
    ]
    for at, event in enumerate(routed):
        if any(id_ < event.id and subject in event.related for id_, subject in others):
            return routed[:at]
    return routed
