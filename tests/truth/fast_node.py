"""A node with the clock of a test: `python fast_node.py CLOCK SPEED`.

CLOCK is a file of one number, the seconds since 1970 that the clock shows (see `SharedClock`).
"""

from __future__ import annotations

import asyncio
import mmap
import struct
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tocsin.logs import configure_logs
from tocsin.node import clocks, open_node
from tocsin.schedules import loop
from tocsin.settings import load_settings

TIME = struct.Struct("d")


class SharedClock:
    """Shows the time that a file holds, in every process that maps it."""

    def __init__(self, path: Path, speed: float) -> None:
        with path.open("r+b") as file:
            self._time = mmap.mmap(file.fileno(), TIME.size)
        self._speed = speed

    def now(self) -> datetime:
        return datetime.fromtimestamp(TIME.unpack(self._time)[0], UTC)

    def set(self, now: datetime) -> None:
        TIME.pack_into(self._time, 0, now.timestamp())

    async def sleep(self, duration: timedelta) -> None:
        await asyncio.sleep(duration.total_seconds() / self._speed)


async def main() -> None:
    configure_logs("console")
    path, speed = Path(sys.argv[1]), float(sys.argv[2])
    # The alarms go by the machine's clock; here a node has to look for itself
    loop.POLL_INTERVAL = timedelta(seconds=loop.POLL_INTERVAL.total_seconds() / speed * 3)
    clocks.LIMIT = timedelta.max  # the database's clock goes as the machine's
    async with open_node(load_settings(), SharedClock(path, speed)) as node:
        await node.run(asyncio.Event())


if __name__ == "__main__":
    asyncio.run(main())
