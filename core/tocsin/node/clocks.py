"""Clock of the node, compared with the database's and with those of the other nodes."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta

import structlog
from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from tocsin.clock import Clock
from tocsin.loops import run_forever
from tocsin.metrics import Metrics
from tocsin.store import (
    CLOCK_TOLERANCE,
    Database,
    NodeClock,
    describe_offset,
    load_clocks,
    load_database_time,
    measure_offset,
    remove_clock,
    store_clock,
)

INTERVAL = timedelta(seconds=1)
"""The interval at which the clock is compared with the database's."""
EXCHANGE_INTERVAL = timedelta(seconds=10)
"""The interval at which nodes compare their clocks."""
LIMIT = timedelta(seconds=60)
"""A node with at least this difference does not work; shorter than what remains of a lease."""
_ADVICE = "synchronize the clocks of the nodes and of the database with NTP"
_log = structlog.get_logger()


class ClockWatch:
    """Suspends the work of a node whose clock is far off.

    Each node decides by its own clock whether a lease has ended. A node whose clock is ahead
    therefore takes over work that other nodes are still doing, and repeats it.
    """

    def __init__(
        self, database: Database, clock: Clock, number: int, metrics: Metrics, *, name: str
    ) -> None:
        self._database = database
        self._clock = clock
        self._number = number
        self._name = name
        self._gauge = metrics.gauge(
            "tocsin_clock_offset_seconds",
            "How many seconds the node's clock is ahead of the database clock, negative if "
            "it is behind; 0 with SQLite",
        )
        self.suspension: str | None = None
        """Why the node does not work; None while it does."""
        self.may_work = asyncio.Event()
        self.must_rest = asyncio.Event()
        self.may_work.set()
        self._reported: list[str] = []
        self._exchanged_at = clock.now() - EXCHANGE_INTERVAL

    async def run(self) -> None:
        """Compare the clocks until cancelled."""
        try:
            await run_forever(self._step, self._clock, "clock comparison")
        finally:
            with suppress(SQLAlchemyError, OSError):
                await self._database.write(remove_clock, self._number)

    async def _step(self) -> None:
        await self._clock.sleep(INTERVAL)
        await self.compare()

    async def compare(self) -> None:
        """Compare the clocks once; do nothing if the database uses the clock of this machine."""
        offset = await self._database.lookup(measure_offset, self._clock)
        if offset is None:
            return
        self._gauge.set(offset.total_seconds())
        self._settle(offset)
        if abs(self._clock.now() - self._exchanged_at) >= EXCHANGE_INTERVAL:
            self._exchanged_at = self._clock.now()
            ours = NodeClock(self._number, self._name, offset)
            self._report(await self._database.write(_exchange, ours), offset)

    def _settle(self, offset: timedelta) -> None:
        """Suspend or resume the work of the node."""
        is_off = abs(offset) >= LIMIT
        if is_off and self.suspension is None:
            _log.error("clock offset too large; node suspended", offset=describe_offset(offset))
            self.must_rest.set()
            self.may_work.clear()
        elif not is_off and self.suspension is not None:
            _log.info("clock offset acceptable again; node resumed", offset=describe_offset(offset))
            self.may_work.set()
            self.must_rest.clear()
        difference = describe_offset(offset)
        clock = f"compared with the database's clock, the clock of this node is {difference}"
        self.suspension = f"{clock}; {_ADVICE}" if is_off else None

    def _report(self, differences: list[str], offset: timedelta) -> None:
        """Log each difference between clocks only once while it lasts."""
        ours = f"{describe_offset(offset)}, compared with the database's clock"
        for difference in differences:
            if difference not in self._reported:
                _log.warning("clocks differ", clocks=difference, this_node=ours, advice=_ADVICE)
        self._reported = differences


def _exchange(connection: Connection, ours: NodeClock) -> list[str]:
    """Store this node's clock, and return the differences from the database's and from others'."""
    now = load_database_time(connection)
    assert now is not None  # noqa: S101 - a database without a clock has no other nodes
    others = [node for node in load_clocks(connection, now) if node.number != ours.number]
    store_clock(connection, ours, now)
    if abs(ours.offset) >= CLOCK_TOLERANCE:
        return [f"{ours.name} and the database"]
    return [
        f"{ours.name} and {other.name}"
        for other in others
        if abs(ours.offset - other.offset) >= CLOCK_TOLERANCE > abs(other.offset)
    ]
