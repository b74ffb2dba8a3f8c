"""Harness for schedules: creation, passing time, and results of runs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import select

from tocsin.events import Notifiers
from tocsin.investigations import FailureCause, Finisher, RunFailure
from tocsin.investigations.runs.assignment import load_assignment
from tocsin.investigations.runs.completion import RunResult, finish_run
from tocsin.investigations.runs.lease import RunLease, claim_runs
from tocsin.model import Confidence, Persona, Report, Statement, Verdict, Window
from tocsin.recurrence import ScheduleDefinition
from tocsin.registry import ManagedBy
from tocsin.schedules import (
    DisabledReason,
    RunCompletion,
    Schedule,
    ScheduleMetrics,
    Scheduler,
    create_schedule,
    load_schedule,
)
from tocsin.store import Database
from tocsin.store.tables import events, schedule_runs, sessions
from tocsin.testing import ManualClock

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
REPORT = Report(
    title="it was nothing",
    query="new logins",
    persona=Persona.ANALYST,
    window=Window(NOW, NOW),
    verdict=Verdict.BENIGN,
    confidence=Confidence.LOW,
    risk_score=12.5,
    summary=(Statement("It was nothing.", ("step:1",)),),
    incidents=(7, 8),
    about=(7,),
)
FAILURE = RunFailure(FailureCause.INVESTIGATION, "incident 404 does not exist")
URL = "https://tocsin.example"
LIMIT = 5


class Office:
    """One database, one clock, and what is done with them."""

    def __init__(self, database: Database, clock: ManualClock) -> None:
        self.database = database
        self.clock = clock
        self.settling = RunCompletion(URL, LIMIT, ScheduleMetrics())

    def node(self, meter: ScheduleMetrics | None = None) -> Scheduler:
        """Return another node that runs schedules."""
        return Scheduler(
            self.database, self.clock, Notifiers(), self.settling, meter or ScheduleMetrics()
        )

    async def make(self, name: str = "nightly", **definition: Any) -> Schedule:
        """Make a schedule; every hour, unless it says otherwise."""
        if not definition.keys() & {"cron", "interval"}:
            definition["interval"] = "1h"
        made = ScheduleDefinition(query="new logins", **definition)
        given = {"managed_by": ManagedBy.API, "by": "ana", "now": self.clock.now()}
        return await self.database.write(create_schedule, name, made, **given)

    async def do(self, action, schedule_id: str, *args: Any) -> Schedule:
        """Do something with a schedule, as a caller does."""

        def work(connection):
            held = load_schedule(connection, schedule_id, lock=True)
            return action(connection, held, *args, self.clock.now())

        return await self.database.write(work)

    async def stop(self, action, schedule_id: str) -> Schedule:
        return await self.do(action, schedule_id, DisabledReason.MANUAL)

    async def load(self, schedule_id: str) -> Schedule:
        return await self.database.read(load_schedule, schedule_id)

    async def fire(self, node: Scheduler | None = None, **passes: float) -> list[str]:
        """Let time pass, and have a node begin all that is due; return what became of it."""
        self.clock.advance(**passes)
        node = node or self.node()
        outcomes: list[str] = []
        while fired := await node.fire():
            outcomes += [run.state.value for run in fired]
        return outcomes

    async def take_up(self, node: int = 1, most: int = 100) -> list[RunLease]:
        """Have a node take up the sessions that wait."""
        return await self.database.write(claim_runs, node, most, self.clock.now())

    async def end(self, lease: RunLease, ending: RunResult, *more: Finisher) -> None:
        """End a run of a session."""
        assignment = await self.database.read(load_assignment, lease)
        after = await self.database.write(
            finish_run,
            lease,
            assignment,
            ending,
            progress={},
            finishers=(self.settling, *more),
            now=self.clock.now(),
        )
        for follow in after:
            follow()

    async def complete(self) -> None:
        """End everything that is under way with a report."""
        for lease in await self.take_up():
            await self.end(lease, RunResult(report=REPORT))

    async def fail(self, failure: RunFailure = FAILURE) -> None:
        """End everything that is under way with a failure."""
        for lease in await self.take_up():
            await self.end(lease, RunResult(failure=failure))

    async def run_and_fail(self, times: int = 1) -> None:
        """Let an hour pass, and have what is then run fail; so many times."""
        for _ in range(times):
            await self.fire(hours=1)
            await self.fail()

    async def runs(self, schedule_id: str | None = None) -> list[dict[str, Any]]:
        of_one = () if schedule_id is None else (schedule_runs.c.schedule_id == schedule_id,)
        return await self.rows(schedule_runs, *of_one)

    async def states(self, schedule_id: str | None = None) -> list[str]:
        return [row["state"] for row in await self.runs(schedule_id)]

    async def events(self) -> list[dict[str, Any]]:
        return await self.rows(events)

    async def told(self) -> list[str]:
        return [row["event_type"] for row in await self.events()]

    async def sessions(self) -> list[dict[str, Any]]:
        return await self.rows(sessions)

    async def rows(self, table, *conditions) -> list[dict[str, Any]]:
        def read(connection):
            query = select(table).where(*conditions).order_by(*table.primary_key.columns)
            return [dict(row) for row in connection.execute(query).mappings()]

        return await self.database.read(read)
