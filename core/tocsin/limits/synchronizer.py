"""Synchronization of token buckets between nodes through the database.

Each node writes its total use of every limit, so a number that is written or read twice counts
once. A total that does not change for ten minutes is pruned and starts again at 0, for its writer
and its readers alike, by the times that its writer stored.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn

from sqlalchemy import Connection, Row, delete, select, tuple_

from tocsin.clock import Clock
from tocsin.limits.buckets import TokenBuckets
from tocsin.loops import run_forever
from tocsin.store import Database, build_insert
from tocsin.store.tables import rate_usage

_KEPT = timedelta(minutes=10)
_PRUNING = timedelta(minutes=1)
# maximum clock difference of two nodes, and delay of a commit after its own timestamp
_OVERLAP = timedelta(seconds=10)
_MOST_WRITTEN = 20_000
_MOST_SEEN = 100_000
_NEVER = datetime.min.replace(tzinfo=UTC)


class UsageTotals:
    """Last known totals, at most `size`: those unchanged for longest are evicted first."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._totals: OrderedDict[tuple[str, ...], tuple[int, datetime]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._totals)

    def get(self, name: tuple[str, ...], now: datetime) -> int:
        """Return the total as of `now`; 0 if it is unknown or starts again."""
        total, changed_at = self._totals.get(name, (0, now))
        return total if now - changed_at <= _KEPT else 0

    def set(self, name: tuple[str, ...], total: int, now: datetime) -> None:
        """Store a total."""
        self._totals[name] = total, now
        self._totals.move_to_end(name)
        if len(self._totals) > self._size:
            self._totals.popitem(last=False)

    def forget(self, before: datetime) -> None:
        """Drop totals that have not changed since `before`."""
        while self._totals and next(iter(self._totals.values()))[1] < before:
            self._totals.popitem(last=False)


class BucketSynchronizer:
    """Synchronizes this node's buckets with those of other nodes, in the background.

    Between two exchanges, nodes together may allow more than the quota; the excess becomes a debt.
    `node` is a name that no other node has, nor this one before its restart.
    """

    def __init__(
        self,
        buckets: Sequence[TokenBuckets],
        database: Database,
        clock: Clock,
        *,
        node: str,
        every: timedelta = timedelta(seconds=2),
    ) -> None:
        self._buckets = {one.name: one for one in buckets}
        self._database = database
        self._clock = clock
        self._node = node
        self._every = every
        self._unwritten: dict[tuple[str, str], int] = {}
        self._written = UsageTotals(_MOST_WRITTEN)
        self._seen = UsageTotals(_MOST_SEEN)
        self._looked_at = self._pruned_at = _NEVER

    async def run(self) -> NoReturn:
        """Synchronize until cancelled."""
        await run_forever(self._step, self._clock, "rate limit sync")

    async def _step(self) -> None:
        await self.exchange()
        await self._clock.sleep(self._every)

    async def exchange(self) -> None:
        """Write local use, and drain the buckets by the use of other nodes.

        Nothing is written without use. A failed write is repeated next time.
        """
        now = self._clock.now()
        await self._write(now)
        await self._look(now)
        if now - self._pruned_at >= _PRUNING:
            await self._prune(now)

    async def _write(self, now: datetime) -> None:
        # while writes fail, the rest stays in the buckets, which are bounded
        self._unwritten = self._unwritten or self._collect()
        totals = {
            used: self._written.get(used, now) + count for used, count in self._unwritten.items()
        }
        if not totals:
            return
        await self._database.write(store_usage, self._node, totals, now)
        for used, total in totals.items():
            self._written.set(used, total, now)
        self._unwritten = {}

    def _collect(self) -> dict[tuple[str, str], int]:
        return {
            (name, key): count
            for name, buckets in self._buckets.items()
            for key, count in buckets.collect().items()
        }

    async def _look(self, now: datetime) -> None:
        # the time of use is unknown for a total that is read first, or after a long time
        is_news = now - self._looked_at <= _KEPT
        since = (self._looked_at if is_news else now - _KEPT) - _OVERLAP
        for row in await self._database.read(
            load_usage_elsewhere, self._node, self._buckets, since
        ):
            more = self._learn(row)
            if more and is_news:
                self._buckets[row.limit].drain(row.key, more)
        self._looked_at = now

    def _learn(self, row: Row[Any]) -> int:
        """Return the increase since the last reading; a total falls when tokens are returned."""
        name = (row.limit, row.key, row.node)
        seen = self._seen.get(name, row.updated_at)
        self._seen.set(name, max(seen, row.used), row.updated_at)
        return max(int(row.used) - seen, 0)

    async def _prune(self, now: datetime) -> None:
        await self._database.write(prune_usage, now - _KEPT)
        for totals in (self._written, self._seen):
            totals.forget(now - _KEPT)
        self._pruned_at = now


def store_usage(
    connection: Connection, node: str, totals: Mapping[tuple[str, str], int], now: datetime
) -> None:
    """Write a node's total use, by limit and key."""
    statement = build_insert(connection, rate_usage)
    new = statement.excluded
    connection.execute(
        statement.on_conflict_do_update(
            index_elements=rate_usage.primary_key,
            set_={"used": new.used, "updated_at": new.updated_at},
        ),
        [
            {"limit": limit, "key": key, "node": node, "used": used, "updated_at": now}
            for (limit, key), used in totals.items()
        ],
    )


def load_usage_elsewhere(
    connection: Connection, node: str, limits: Collection[str], since: datetime
) -> Sequence[Row[Any]]:
    """Return the rows of these limits that other nodes changed since then."""
    of_others = rate_usage.c.limit.in_(limits), rate_usage.c.node != node
    return connection.execute(
        select(rate_usage).where(rate_usage.c.updated_at > since, *of_others)
    ).all()


def prune_usage(connection: Connection, before: datetime) -> None:
    """Delete rows unchanged since `before`, except those that are being written.

    Waiting for them could deadlock.
    """
    old = (
        select(*rate_usage.primary_key)
        .where(rate_usage.c.updated_at < before)
        .with_for_update(skip_locked=True)
    )
    connection.execute(delete(rate_usage).where(tuple_(*rate_usage.primary_key).in_(old)))
