"""Clock interface, so that tests do not wait, and time formatting."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Protocol


def isoformat(moment: datetime) -> str:
    """Return a time in ISO 8601, in UTC and to the millisecond: `2026-11-21T05:33:01.123Z`."""
    utc = moment if moment.tzinfo is UTC else moment.astimezone(UTC)
    return f"{utc.isoformat(timespec='milliseconds')[:-6]}Z"


def isoformat_or_none(moment: datetime | None) -> str | None:
    """Return a time like `isoformat`; None for None."""
    return None if moment is None else isoformat(moment)


class Clock(Protocol):
    """Source of the current time and of delays."""

    def now(self) -> datetime:
        """Return the current time, in UTC."""
        ...

    async def sleep(self, duration: timedelta) -> None:
        """Wait until `duration` has passed on this clock."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """Return the current time, in UTC."""
        return datetime.now(UTC)

    async def sleep(self, duration: timedelta) -> None:
        """Wait until `duration` has passed.

        Raises CancelledError if the task was cancelled before, and something swallowed that.
        """
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise asyncio.CancelledError
        await asyncio.sleep(duration.total_seconds())
