"""Manual clock for tests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


class ManualClock:
    """A clock that advances only when you advance it or when code sleeps."""

    def __init__(self, now: datetime = datetime(2026, 11, 21, 12, tzinfo=UTC)) -> None:
        self._now = now

    def now(self) -> datetime:
        """Return the current time of this clock."""
        return self._now

    def advance(self, **duration: float) -> None:
        """Advance the clock by a duration; the arguments are those of `timedelta`."""
        self._now += timedelta(**duration)

    async def sleep(self, duration: timedelta) -> None:
        """Advance the clock by `duration` and return immediately."""
        self._now += duration
