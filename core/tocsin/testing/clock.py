"""Manual clock for tests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


class ManualClock:
    """A `tocsin.Clock` that stands still until it is moved; whoever sleeps on it moves it."""

    def __init__(self, now: datetime = datetime(2026, 11, 21, 12, tzinfo=UTC)) -> None:
        self._now = now

    def now(self) -> datetime:
        """Return the time that the clock was moved to."""
        return self._now

    def advance(self, **duration: float) -> None:
        """Move the clock; takes what `timedelta` takes."""
        self._now += timedelta(**duration)

    async def sleep(self, duration: timedelta) -> None:
        """Return at once, with the clock moved by `duration`."""
        self._now += duration
