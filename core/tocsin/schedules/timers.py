"""Schedule timers, the only user of APScheduler.

Timers only wake the scheduler; the database decides what to run. A late or missing timer delays a
run by at most a second, since the scheduler also polls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.base import BaseTrigger

from tocsin.recurrence import Recurrence


class DueTimeTrigger(BaseTrigger):  # type: ignore[misc] # it has no types
    """Fires when a schedule is due; passed fire times are handled by the database."""

    def __init__(self, recurrence: Recurrence) -> None:
        self._recurrence = recurrence

    def get_next_fire_time(self, _previous: datetime | None, now: datetime) -> datetime | None:
        """Return the next due time, or None if there is none."""
        following = self._recurrence.pending(now.astimezone(UTC))
        return None if following is None else following.due


class ScheduleTimers:
    """One timer per enabled schedule, all of which call the same function."""

    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring = ring
        self._revisions: dict[str, int] = {}
        self._scheduler = AsyncIOScheduler(timezone=UTC)

    def start(self) -> None:
        """Start the timers."""
        self._scheduler.start()

    def stop(self) -> None:
        """Stop the timers."""
        self._scheduler.shutdown(wait=False)

    def changed(self, revisions: Mapping[str, int]) -> list[str]:
        """Return the enabled schedules whose timer is missing or outdated."""
        known = self._revisions
        return [id_ for id_, revision in revisions.items() if known.get(id_) != revision]

    def set(self, schedule_id: str, revision: int, recurrence: Recurrence) -> None:
        """Set the timer of a schedule."""
        self._revisions[schedule_id] = revision
        self._scheduler.add_job(
            self._fire,
            DueTimeTrigger(recurrence),
            id=schedule_id,
            replace_existing=True,
            coalesce=True,
            misfire_grace_time=None,
            max_instances=100,
        )

    def keep(self, revisions: Mapping[str, int]) -> None:
        """Remove the timers of all other schedules."""
        for schedule_id in self._revisions.keys() - revisions.keys():
            del self._revisions[schedule_id]
            # A timer that fired for the last time is already removed
            if self._scheduler.get_job(schedule_id) is not None:
                self._scheduler.remove_job(schedule_id)

    async def _fire(self) -> None:
        self._ring()
