"""Schedule timers, the only users of APScheduler."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.base import BaseTrigger

from tocsin.recurrence import Recurrence


class DueTimeTrigger(BaseTrigger):  # type: ignore[misc] # it has no types
    """Goes off when a schedule is due. What has passed is left to the database."""

    def __init__(self, recurrence: Recurrence) -> None:
        self._recurrence = recurrence

    def get_next_fire_time(self, _previous: datetime | None, now: datetime) -> datetime | None:
        """Return when it goes off next, None where it never does again."""
        following = self._recurrence.pending(now.astimezone(UTC))
        return None if following is None else following.due


class ScheduleTimers:
    """One alarm for each schedule that is enabled, each of which rings the same notifier."""

    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring = ring
        self._revisions: dict[str, int] = {}
        self._scheduler = AsyncIOScheduler(timezone=UTC)

    def start(self) -> None:
        """Begin to ring."""
        self._scheduler.start()

    def stop(self) -> None:
        """Ring no more."""
        self._scheduler.shutdown(wait=False)

    def changed(self, revisions: Mapping[str, int]) -> list[str]:
        """Return the schedules whose alarm is to be set anew, given those that are enabled."""
        known = self._revisions
        return [id_ for id_, revision in revisions.items() if known.get(id_) != revision]

    def set(self, schedule_id: str, revision: int, recurrence: Recurrence) -> None:
        """Have a schedule ring when it is due."""
        self._revisions[schedule_id] = revision
        self._scheduler.add_job(
            self._go_off,
            DueTimeTrigger(recurrence),
            id=schedule_id,
            replace_existing=True,
            coalesce=True,
            misfire_grace_time=None,
            max_instances=100,
        )

    def keep(self, revisions: Mapping[str, int]) -> None:
        """Forget every schedule that is not among these."""
        for schedule_id in self._revisions.keys() - revisions.keys():
            del self._revisions[schedule_id]
            # One that has rung for the last time is gone already
            if self._scheduler.get_job(schedule_id) is not None:
                self._scheduler.remove_job(schedule_id)

    async def _go_off(self) -> None:
        self._ring()
