"""Reads from a replica, unless it lags too far behind or lacks what the caller wrote."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from datetime import timedelta
from enum import StrEnum
from typing import Any, NoReturn, TypeVar

import structlog
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from tocsin.clock import Clock
from tocsin.errors import TocsinError
from tocsin.loops import run_forever
from tocsin.store.database import Database
from tocsin.store.faults import find_fault
from tocsin.store.statements import load_last_allotted
from tocsin.store.write_marks import Freshness, load_shown, store_beat

T = TypeVar("T")
BEAT_INTERVAL = timedelta(seconds=1)
"""How often a node writes something for the replica to show."""
PATIENCE = 1.0
"""How many seconds a replica has to begin its response before it counts as frozen."""
MOST_READS = 9
"""Reads at once. One connection of the pool is left to measure the lag."""
_POLLS = (0.0, 0.01, 0.05, 0.2)
"""Pauses in seconds until the replica shows a beat; later, the next one measures the lag."""
_KEPT_BEATS = 3600
_ON_REPLICA = "tocsin_on_replica"
# A standby cancels a read that keeps it from replaying (section 26.4.2 of PostgreSQL's manual), and
# any server cancels one that exceeds its limit
_CONFLICT_STATES = ("40001", "40P01", "57014")
_log = structlog.get_logger()


class FallbackReason(StrEnum):
    """Why the primary answered a read that a replica could have answered."""

    UNREACHABLE = "unreachable"
    """No connection, no response in time, or another fault of the server."""
    LAGGING = "lagging"
    """It lags by more than the limit."""
    BEHIND = "behind"
    """It does not yet have what the caller wrote or has seen."""
    CANCELED = "canceled"
    """It canceled the read, to replay changes of the primary."""
    BUSY = "busy"
    """Other reads used its connections for too long."""
    UNMARKED = "unmarked"
    """A node without a read URL, or of an earlier version, serves the API too."""
    PROBLEM = "problem"
    """The request failed on the replica, perhaps because it is about a newer record."""


class ReplicaFault(TocsinError):  # noqa: N818 - a state that leads to the primary
    """The replica cannot answer this read."""

    def __init__(self, reason: FallbackReason, detail: str = "") -> None:
        super().__init__(detail or reason.value)
        self.reason = reason


def require_replayed(connection: Connection, sequence: str, number: int) -> None:
    """Raise ReplicaFault on a replica where this number is not allotted yet.

    Nothing on the primary. Call it with the latest number that a caller has seen.
    """
    if connection.info.get(_ON_REPLICA) and load_last_allotted(connection, sequence) < number:
        raise ReplicaFault(FallbackReason.BEHIND)


class ReadReplica:
    """A replica of the primary, which answers reads in its place."""

    def __init__(
        self,
        replica: Database,
        primary: Database,
        clock: Clock,
        node: int,
        *,
        max_lag: timedelta,
        count: Callable[[FallbackReason | None], None] = lambda _: None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`count` is called for each read, with None if the replica answered it."""
        self._replica = replica
        self._primary = primary
        self._clock = clock
        self._node = node
        self._max_lag = max_lag.total_seconds()
        self._count = count
        self._monotonic = monotonic
        self._beats: OrderedDict[int, float] = OrderedDict()
        """When each beat was stored, at the earliest."""
        self._lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done while the replica does not respond, which ends the reads under way."""
        self._abandoned: set[asyncio.Task[Any]] = set()
        self._permits = asyncio.Semaphore(MOST_READS)
        self._reported: FallbackReason | None = None
        self.lag: float | None = None
        """Seconds that the replica lags behind; None if that is unknown."""

    async def run(self) -> NoReturn:
        """Measure the lag until cancelled."""
        await run_forever(self._step, self._clock, "replica lag")

    async def _step(self) -> None:
        await self.measure()
        await self._clock.sleep(BEAT_INTERVAL)

    async def measure(self) -> None:
        """Store a beat on the primary, and measure when the replica shows it."""
        begun = self._monotonic()
        beat = await self._primary.write(store_beat, self._node)
        if beat is None:  # the first heartbeat of the node is not stored yet
            return
        self._beats[beat] = begun
        while len(self._beats) > _KEPT_BEATS:
            self._beats.popitem(last=False)
        written = self._monotonic()
        try:
            self.lag = await self._measure(beat, written)
        except Exception as error:  # noqa: BLE001 - whatever fails, the primary answers meanwhile
            self.lag = None
            self._report(FallbackReason.UNREACHABLE, str(getattr(error, "orig", None) or error))
            return
        is_lagging = self.lag is None or self.lag > self._max_lag
        self._report(FallbackReason.LAGGING if is_lagging else None)

    async def _measure(self, beat: int, written: float) -> float | None:
        for pause in _POLLS:
            await asyncio.sleep(pause)
            _, shown = await self._attempt(
                asyncio.create_task(self._replica.read(load_shown, None, self._node))
            )
            if shown == beat:
                return self._monotonic() - written
        return self._age(shown)

    def _age(self, shown: int | None) -> float | None:
        """Return the maximum lag, in seconds, of a replica that shows this beat."""
        if shown is None or (stored := self._beats.get(shown)) is None:
            return None
        return self._monotonic() - stored

    def _report(self, reason: FallbackReason | None, detail: str = "") -> None:
        """Send reads to the primary or to the replica, and log each change."""
        is_lost = reason is FallbackReason.UNREACHABLE
        if is_lost and not self._lost.done():
            self._lost.set_result(None)
        elif not is_lost and self._lost.done():
            self._lost = asyncio.get_running_loop().create_future()
        if reason is not self._reported:
            if reason is None:
                _log.info("read replica in use", lag=self.lag)
            else:
                _log.warning("read replica not used", reason=reason.value, detail=detail)
        self._reported = reason

    async def read(
        self, freshness: Freshness, operation: Callable[[Connection], T]
    ) -> tuple[T, float | None]:
        """Return the result of an operation that only reads, and the age of the answer.

        The age is the most seconds that the replica is behind; None where the primary answered.
        The primary does so whenever the replica fails, whatever the reason. Raises what it raises.
        """
        try:
            found = await self._read(freshness, operation)
        except Exception as error:  # noqa: BLE001 - the primary raises it again if it is no fault of the replica
            reason = _find_reason(error)
            self._count(reason)
            if reason is FallbackReason.UNREACHABLE and self._reported is None:
                self._report(reason, str(getattr(error, "orig", None) or error))
        else:
            self._count(None)
            return found
        return await self._primary.read(operation), None

    async def _read(
        self, freshness: Freshness, operation: Callable[[Connection], T]
    ) -> tuple[T, float]:
        if self._reported is not None:
            raise ReplicaFault(self._reported)
        if not freshness.is_known:
            raise ReplicaFault(FallbackReason.UNMARKED)
        await self._acquire_permit()
        begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def read(connection: Connection) -> tuple[T, float]:
            age = self._require(connection, freshness)
            connection.info[_ON_REPLICA] = True
            if not begun.done():
                begun.set_result(None)
            return operation(connection), age

        task = asyncio.create_task(self._replica.read(read))
        task.add_done_callback(lambda _: self._permits.release())
        return await self._attempt(task, begun)

    async def _acquire_permit(self) -> None:
        """Wait for a permit; raises ReplicaFault if slow reads keep them all.

        These do not mean that the replica is lost, which would send all of them to the primary.
        """
        try:
            async with asyncio.timeout(PATIENCE):
                await self._permits.acquire()
        except TimeoutError:
            raise ReplicaFault(FallbackReason.BUSY) from None
        if self._reported is not None:
            self._permits.release()
            raise ReplicaFault(self._reported)

    async def _attempt(self, task: asyncio.Task[T], begun: asyncio.Future[None] | None = None) -> T:
        """Return the result of a read; raises ReplicaFault if the replica is frozen or lost.

        What is abandoned ends in the background: to close a connection to a frozen server takes
        time.
        """
        awaited: set[asyncio.Future[Any]] = {task} if begun is None else {task, begun}
        try:
            await asyncio.wait(awaited, timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
            if begun is not None and begun.done():
                awaited = {task, self._lost}
                await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise ReplicaFault(FallbackReason.UNREACHABLE, "no response in time")
            return task.result()
        finally:
            if not task.done():
                task.cancel()
                self._abandoned.add(task)
                task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._abandoned.discard(task)
        if not task.cancelled():
            task.exception()

    def _require(self, connection: Connection, freshness: Freshness) -> float:
        """Return the age; raises ReplicaFault unless it shows what was written, and is new enough.

        Each connection may lead to another server, so each read looks.
        """
        mark, shown = load_shown(connection, freshness.place, self._node)
        age = self._age(shown)
        if age is None or age > self._max_lag:
            raise ReplicaFault(FallbackReason.LAGGING)
        if mark != freshness.mark:
            raise ReplicaFault(FallbackReason.BEHIND)
        return age

    async def close(self) -> None:
        """Close the connections."""
        await asyncio.gather(*self._abandoned, return_exceptions=True)
        await self._replica.close()


def _find_reason(error: Exception) -> FallbackReason:
    match error:
        case ReplicaFault():
            return error.reason
        case DBAPIError() if getattr(error.orig, "sqlstate", None) in _CONFLICT_STATES:
            return FallbackReason.CANCELED
    return FallbackReason.PROBLEM if find_fault(error) is None else FallbackReason.UNREACHABLE
