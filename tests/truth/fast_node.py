"""A node whose clock goes faster: `python fast_node.py BEGIN STARTED SPEED`, both in seconds.

Its clock showed BEGIN when the machine's showed STARTED.
"""

from __future__ import annotations

import asyncio
import sys
import time
from datetime import UTC, datetime, timedelta

from tocsin.logs import configure_logs
from tocsin.node import clocks, open_node
from tocsin.schedules import loop
from tocsin.settings import load_settings


class FastClock:
    """Shows the same time in every process that is given the same numbers."""

    def __init__(self, begin: float, started: float, speed: float) -> None:
        self._begin, self._started, self._speed = begin, started, speed

    def now(self) -> datetime:
        passed = (time.time() - self._started) * self._speed
        return datetime.fromtimestamp(self._begin + passed, UTC)

    async def sleep(self, duration: timedelta) -> None:
        await asyncio.sleep(duration.total_seconds() / self._speed)


async def main() -> None:
    configure_logs("console")
    begin, started, speed = map(float, sys.argv[1:])
    # The alarms go by the machine's clock; here a node has to look for itself
    loop.POLL_INTERVAL = timedelta(seconds=loop.POLL_INTERVAL.total_seconds() / speed * 3)
    clocks.LIMIT = timedelta.max  # the database's clock goes as the machine's
    async with open_node(load_settings(), FastClock(begin, started, speed)) as node:
        await node.run(asyncio.Event())


if __name__ == "__main__":
    asyncio.run(main())
