"""CPU time, WAL, rows and lock waits of a PostgreSQL server under load."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg

from tocsin.events import SHARDS

_TICK = 0.02
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_NAMED = ("routing", "relations", "incidents", "push to pushed", "the archive")
_WAITS = """
SELECT waiting.query, waiting.wait_event, bool_or(blocking.usename <> waiting.usename) AS foreign
FROM pg_stat_activity waiting
CROSS JOIN LATERAL unnest(pg_blocking_pids(waiting.pid)) AS blocker
JOIN pg_stat_activity blocking ON blocking.pid = blocker
WHERE waiting.datname = current_database() AND waiting.wait_event_type = 'Lock'
GROUP BY waiting.pid, waiting.query, waiting.wait_event
"""
_ACTIVITY = """
SELECT coalesce(wait_event_type, 'CPU') AS kind, count(*) FROM pg_stat_activity
WHERE datname = current_database() AND state = 'active' AND usename LIKE 'node%' GROUP BY 1
"""
_HELD = """
SELECT DISTINCT CASE locktype
  WHEN 'advisory' THEN 'advisory ' || ((classid::bigint << 32) | objid::bigint)
  WHEN 'relation' THEN 'sequences'
  ELSE 'notices' END
FROM pg_locks
WHERE granted AND (
  (locktype = 'advisory' AND mode = 'ExclusiveLock')
  OR (locktype = 'relation' AND relation = 'sequences'::regclass AND mode = 'RowExclusiveLock')
  OR (locktype = 'object' AND classid = 'pg_database'::regclass AND objid = 0)
)
"""
_LABELS = """
SELECT 'advisory ' || hashtextextended(name, 0) AS key, name FROM unnest($1::text[]) AS name
"""
_WRITTEN = """
SELECT tup_inserted + tup_updated + tup_deleted
FROM pg_stat_database WHERE datname = current_database()
"""


@dataclass(frozen=True)
class Usage:
    """What the server has used between two moments."""

    seconds: float
    cpu: float
    wal: int


@dataclass
class LockSamples:
    """Samples of who waited for a lock, and of which locks were held."""

    count: int = 0
    seconds: float = 0.0
    waits: Counter[str] = field(default_factory=Counter)
    """Samples of sessions that waited for another node, by statement."""
    own_waits: int = 0
    """Samples of sessions that waited for their own node."""
    held: Counter[str] = field(default_factory=Counter)
    activity: Counter[str] = field(default_factory=Counter)

    def share(self, count: int) -> float:
        """Return the share of the time, by the number of samples."""
        return count / self.count if self.count else 0.0


class ServerWatch:
    """Measures a server over two connections of its own, which are not counted."""

    def __init__(
        self, connection: asyncpg.Connection, sampling: asyncpg.Connection, postmaster: int
    ) -> None:
        self._connection = connection
        self._sampling = sampling
        self._postmaster = postmaster

    @classmethod
    async def open(cls, dsn: str, data: Path) -> ServerWatch:
        """Connect to a database of the server whose files are in `data`."""
        connections = [await asyncpg.connect(dsn) for _ in range(2)]
        postmaster = (data / "postmaster.pid").read_text().split("\n", 1)[0]
        return cls(*connections, int(postmaster))

    async def close(self) -> None:
        """Close the connections."""
        await self._sampling.close()
        await self._connection.close()

    async def mark(self) -> Usage:
        """Return what the server has used up to now."""
        wal = await self._connection.fetchval("SELECT pg_current_wal_lsn() - '0/0'::pg_lsn")
        return Usage(time.monotonic(), self._cpu(), int(wal))

    async def since(self, before: Usage) -> Usage:
        """Return what the server has used since then."""
        now = await self.mark()
        return Usage(now.seconds - before.seconds, now.cpu - before.cpu, now.wal - before.wal)

    async def count_rows(self) -> int:
        """Return the rows written by sessions that have ended."""
        return int(await self.fetch(_WRITTEN))

    async def fetch(self, statement: str, *values: Any) -> Any:
        """Return the first value of a statement."""
        return await self._connection.fetchval(statement, *values)

    @asynccontextmanager
    async def sampling(self) -> AsyncIterator[LockSamples]:
        """Sample the locks meanwhile."""
        samples = LockSamples()
        names = [*_NAMED, *(f"routing {shard}" for shard in range(SHARDS))]
        labels = {row["key"]: row["name"] for row in await self._connection.fetch(_LABELS, names)}
        begin = time.monotonic()
        task = asyncio.create_task(self._sample(samples, labels))
        try:
            yield samples
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            samples.seconds = time.monotonic() - begin

    async def _sample(self, samples: LockSamples, labels: dict[str, str]) -> None:
        while True:
            await asyncio.shield(self._sample_once(samples, labels))
            await asyncio.sleep(_TICK)

    async def _sample_once(self, samples: LockSamples, labels: dict[str, str]) -> None:
        for query, event, is_foreign in await self._sampling.fetch(_WAITS):
            if is_foreign:
                samples.waits[f"{_shorten(query)} ({event})"] += 1
            else:
                samples.own_waits += 1
        for (key,) in await self._sampling.fetch(_HELD):
            name = labels.get(key, key)
            if not name.startswith("advisory"):  # others mark nodes as present
                samples.held[name] += 1
        for kind, count in await self._sampling.fetch(_ACTIVITY):
            samples.activity[kind] += count
        samples.count += 1

    def _cpu(self) -> float:
        """Return the CPU seconds of all processes of the server but our own session."""
        own = {each.get_server_pid() for each in (self._connection, self._sampling)}
        others = (pid for pid in _children(self._postmaster) if pid not in own)
        return read_cpu(self._postmaster, ended=True) + sum(map(read_cpu, others))


def read_cpu(pid: int, *, ended: bool = False) -> float:
    """Return the CPU seconds of a process; with `ended`, also those of its children that ended."""
    fields = _read_stat(pid)
    if fields is None:
        return 0.0
    return sum(map(int, fields[11:15] if ended else fields[11:13])) / _TICKS_PER_SECOND


def _children(parent: int) -> Iterator[int]:
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            fields = _read_stat(int(path.name))
            if fields is not None and int(fields[1]) == parent:
                yield int(path.name)


def _read_stat(pid: int) -> list[str] | None:
    """Return the fields after the name, from the state on; None if the process has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def _shorten(query: str) -> str:
    """Return the beginning of a statement, without its parameters."""
    text = re.sub(r"\s+", " ", re.sub(r"\$\d+(::\w+)?", "?", query)).strip()
    return text if len(text) <= 72 else f"{text[:71]}…"


def sum_shards(held: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Return the samples by lock, with the busiest shard of routing for all of them."""
    found: dict[str, int] = {}
    for name, count in held:
        group = "routing" if name.startswith("routing") else name
        found[group] = max(found.get(group, 0), count)
    return found
