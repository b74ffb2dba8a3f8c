"""Fire times of a schedule, by a cron expression or an interval."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256
from itertools import islice, takewhile
from zoneinfo import ZoneInfo

from tocsin.recurrence.cron import iter_cron_times
from tocsin.recurrence.definition import ScheduleDefinition

MAX_COUNTED = 100
"""How many missed fire times to count at most, because each one has to be computed."""
_TICK = timedelta(microseconds=1)
_MINUTE = timedelta(minutes=1)
_NO_TIME = timedelta(0)


@dataclass(frozen=True, slots=True)
class FireTime:
    """One planned run."""

    at: datetime
    """The time from the cron expression or the interval; it identifies the run."""
    due: datetime
    """When to run: the same time with the schedule's jitter added."""


@dataclass(frozen=True, slots=True)
class PastFireTimes:
    """Due fire times of a schedule that have not been handled yet."""

    first: FireTime | None
    latest: FireTime | None
    """The first and the last of these times; None if there are none."""
    earlier: int
    """How many times precede `latest`, counted up to MAX_COUNTED."""
    until: datetime | None
    """The last time before `latest`."""
    following: FireTime | None
    """The first time that is not due yet; None after the end of the schedule."""


@dataclass(frozen=True, slots=True)
class Recurrence:
    """Fire times of one schedule."""

    definition: ScheduleDefinition
    key: str
    """The seed of the jitter: equal on all nodes, different for each schedule."""
    anchor: datetime
    """The origin of an interval, unless the schedule has a `starts_at`."""

    def after(self, moment: datetime) -> Iterator[FireTime]:
        """Yield the fire times after a time, in order."""
        begin, end = self.definition.starts_at, self.definition.ends_at
        since = moment if begin is None else max(moment, begin - _TICK)
        times = takewhile(lambda at: end is None or at <= end, self._times(since))
        return (FireTime(at, at + self._delay(at)) for at in times)

    def since(self, moment: datetime) -> Iterator[FireTime]:
        """Yield the fire times at and after a time, in order."""
        return self.after(moment - _TICK)

    def without_jitter(self) -> Recurrence:
        """Return the recurrence without its jitter."""
        return replace(self, definition=self.definition.model_copy(update={"jitter": None}))

    def next(self, moment: datetime) -> FireTime | None:
        """Return the first fire time after a time; None if there is none."""
        return next(self.after(moment), None)

    def pending(self, now: datetime) -> FireTime | None:
        """Return the first fire time that is not due by `now`; None if there is none."""
        times = self.after(now - (self.definition.jitter or _NO_TIME))
        return next((time for time in times if time.due > now), None)

    def past(self, first: datetime, now: datetime) -> PastFireTimes:
        """Return the fire times due by `now`, from `first` on."""
        due = list(islice(self._due(first, now), MAX_COUNTED + 1))
        if not due:
            return PastFireTimes(None, None, 0, None, next(self.since(first), None))
        latest = due if len(due) <= MAX_COUNTED else self._last_two(first, now)
        until = latest[-2].at if latest[1:] else None
        return PastFireTimes(due[0], latest[-1], len(due) - 1, until, self.pending(now))

    def _due(self, first: datetime, now: datetime) -> Iterator[FireTime]:
        return takewhile(lambda fire: fire.due <= now, self.since(first))

    def _last_two(self, first: datetime, now: datetime) -> list[FireTime]:
        """Return the last due fire times, two or more, in a growing window before `now`."""
        window = (self.definition.interval or _MINUTE) + (self.definition.jitter or _NO_TIME)
        found: list[FireTime] = []
        while not found[1:]:
            window *= 2
            found = list(self._due(max(first, now - window), now))
        return found

    def _times(self, after: datetime) -> Iterator[datetime]:
        definition = self.definition
        if definition.cron is not None:
            return iter_cron_times(definition.cron_fields, ZoneInfo(definition.timezone), after)
        assert definition.interval is not None  # noqa: S101 - a definition has either
        return _iter_interval_times(definition.interval, definition.starts_at, self.anchor, after)

    def _delay(self, at: datetime) -> timedelta:
        """Return the delay by jitter, which is random but equal on all nodes."""
        jitter = self.definition.jitter
        if jitter is None:
            return _NO_TIME
        drawn = sha256(f"{self.key}:{at.timestamp():.0f}".encode()).digest()
        share = int.from_bytes(drawn[:6], "big") / 2**48
        return timedelta(milliseconds=int(share * (jitter / timedelta(milliseconds=1))))


def _iter_interval_times(
    interval: timedelta, begin: datetime | None, anchor: datetime, after: datetime
) -> Iterator[datetime]:
    """Yield the times after `after`; the first is `begin`, if given."""
    first = begin or anchor + interval
    passed = max((after - first) // interval + 1, 0)
    at = first + passed * interval
    while True:
        yield at
        at += interval
