"""The loops of a node that runs schedules: it looks when something is due, and follows changes."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from datetime import timedelta
from typing import Any

import structlog
from sqlalchemy import Connection, select

from tocsin.clock import Clock
from tocsin.events import Notifier, Notifiers
from tocsin.loops import run_forever
from tocsin.schedules.completion import RunCompletion, list_abandoned_sessions, settle_abandoned_run
from tocsin.schedules.due_schedules import FireResult, fire_due, is_anything_due
from tocsin.schedules.metrics import ScheduleMetrics
from tocsin.schedules.records import (
    SCHEDULES,
    RunState,
    Schedule,
    ScheduleStatus,
    parse_schedule_row,
)
from tocsin.schedules.timers import ScheduleTimers
from tocsin.store import Database, find_fault
from tocsin.store.tables import schedules

POLL_INTERVAL = timedelta(seconds=1)
"""The poll interval, in case a timer is missing or the clock is changed."""
FOLLOW_INTERVAL = timedelta(seconds=2)
SWEEP_INTERVAL = timedelta(seconds=5)
_READ_AT_ONCE = 500
_s = schedules.c
_log = structlog.get_logger()


class Scheduler:
    """Runs due schedules; any number of nodes may, and one of them runs each fire time."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        notifiers: Notifiers,
        settling: RunCompletion,
        meter: ScheduleMetrics,
    ) -> None:
        self._database = database
        self._clock = clock
        self._changes = notifiers[SCHEDULES]
        self.settling = settling
        self._meter = meter
        self._due = Notifier()
        self._timers = ScheduleTimers(self._due.notify)

    def loops(self) -> list[Coroutine[Any, Any, None]]:
        """Return the loops to run until cancelled."""
        return [
            run_forever(self._step, self._clock, "schedule loop"),
            run_forever(self._sweep, self._clock, "abandoned run cleanup"),
            self._follow(),
        ]

    async def _step(self) -> None:
        if not await self.fire():
            await self._due.wait(POLL_INTERVAL)

    async def fire(self) -> Sequence[FireResult]:
        """Start a batch of due runs, and return the results; empty if none is due."""
        now = self._clock.now()
        if not await self._database.lookup(is_anything_due, now):
            return ()
        fired = await self._database.write(fire_due, now)
        self._meter.count_fires(fired)
        for result in fired:
            if result.state is RunState.MISSED:
                message = "runs missed: no node was running at the time"
                _log.warning(message, schedule=result.schedule_id, count=result.count)
        return fired

    async def _sweep(self) -> None:
        await self._clock.sleep(SWEEP_INTERVAL)
        await self.settle_abandoned()

    async def settle_abandoned(self) -> None:
        """Complete runs that were cancelled or not claimed."""
        for session_id in await self._database.read(list_abandoned_sessions, self._clock.now()):
            try:
                await self._settle(session_id)
            except Exception as error:  # one failure must not block the others
                if find_fault(error) is not None:
                    raise
                _log.exception("run not completed", session=session_id)

    async def _settle(self, session_id: str) -> None:
        """Complete one run per transaction, since locking two schedules could deadlock."""
        now = self._clock.now()
        follow = await self._database.write(settle_abandoned_run, session_id, self.settling, now)
        if follow is not None:
            follow()

    async def _follow(self) -> None:
        self._timers.start()
        try:
            await run_forever(self._follow_once, self._clock, "schedule timers")
        finally:
            self._timers.stop()

    async def _follow_once(self) -> None:
        revisions = await self._database.read(_load_revisions)
        self._timers.keep(revisions)
        changed = self._timers.changed(revisions)
        for begin in range(0, len(changed), _READ_AT_ONCE):
            ids = changed[begin : begin + _READ_AT_ONCE]
            for schedule in await self._database.read(_load_by_ids, ids):
                self._set_timer(schedule)
            await asyncio.sleep(0)
        self._due.notify()
        await self._changes.wait(FOLLOW_INTERVAL)

    def _set_timer(self, schedule: Schedule) -> None:
        try:
            self._timers.set(schedule.id, schedule.revision, schedule.recurrence)
        except ValueError:  # logged where the schedule is run
            _log.warning("no timer for schedule", schedule=schedule.id)


def _load_revisions(connection: Connection) -> dict[str, int]:
    active = select(_s.id, _s.revision).where(_s.status == ScheduleStatus.ACTIVE)
    return {row.id: row.revision for row in connection.execute(active)}


def _load_by_ids(connection: Connection, ids: Sequence[str]) -> list[Schedule]:
    rows = connection.execute(select(schedules).where(_s.id.in_(ids))).mappings()
    return [parse_schedule_row(row) for row in rows]
