"""Start delay of scheduled runs, with 5,000 schedules of which 200 are due each second."""

from __future__ import annotations

import asyncio
import sys
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from statistics import median, quantiles

from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.interval import IntervalTrigger
from sqlalchemy import Connection, func, select

from bench.databases import KINDS, new_urls, open_new
from bench.subprocesses import child
from tocsin import gc
from tocsin.clock import SystemClock
from tocsin.events import Notifiers
from tocsin.recurrence import ScheduleDefinition
from tocsin.registry import ManagedBy
from tocsin.schedules import RunCompletion, ScheduleMetrics, Scheduler, create_schedule
from tocsin.store import Database, open_database
from tocsin.store.tables import schedule_runs

SCHEDULES = 5_000
EVERY = timedelta(seconds=25)
LEAD = timedelta(seconds=20)
"""Time for the nodes to set their timers before the first run is due."""
SECONDS = 25
"""Each schedule is due once in this time."""
NODES = 3
_AT_ONCE = 250


def run(_rounds: int) -> None:
    """Measure every kind of database, and a plain scheduler that runs nothing."""
    print(f"\n{SCHEDULES:,} schedules, {SCHEDULES // SECONDS} due per second", flush=True)
    print("\n| Start delay | runs | p50 | p99 | maximum |\n|---|---:|---:|---:|---:|")
    for kind in KINDS:
        for nodes in (1,) if kind == "SQLite" else (1, NODES):
            with new_urls(kind) as new_url:
                asyncio.run(_measure(f"{kind}, nodes: {nodes}", new_url, nodes))
    asyncio.run(_measure_bare())


async def _measure(name: str, new_url, nodes: int) -> None:
    database = await open_new(new_url)
    begin = datetime.now(UTC) + LEAD
    for first in range(0, SCHEDULES, _AT_ONCE):
        await database.write(_create, begin, range(first, first + _AT_ONCE))
    url = database_url(database)
    async with _running(database):
        others = [child(_node, url) for _ in range(nodes - 1)]
        for other in others:
            other.__enter__()
        late = begin + timedelta(seconds=SECONDS + 5) - datetime.now(UTC)
        await asyncio.sleep(max(late.total_seconds(), 0))
        for other in others:
            other.__exit__(None, None, None)
    _report(name, await database.read(_lateness, begin))
    await database.close()


def database_url(database: Database):
    return database._engine.url  # noqa: SLF001 - of the databases that it opened itself


def _create(connection: Connection, begin: datetime, numbers: range) -> None:
    now = datetime.now(UTC)
    for number in numbers:
        definition = ScheduleDefinition(
            query="new logins of the last hour",
            interval=EVERY,
            starts_at=begin + timedelta(milliseconds=number * 1_000 * SECONDS // SCHEDULES),
        )
        given = {"managed_by": ManagedBy.API, "by": "bench", "now": now}
        create_schedule(connection, f"schedule-{number}", definition, **given)


@asynccontextmanager
async def _running(database: Database):
    clock, meter = SystemClock(), ScheduleMetrics()
    settling = RunCompletion("http://127.0.0.1:8080", 5, meter)
    node = Scheduler(database, clock, Notifiers(), settling, meter)
    loops = [asyncio.create_task(loop) for loop in node.loops()]
    yield
    for loop in loops:
        loop.cancel()
    await asyncio.gather(*loops, return_exceptions=True)


def _node(send, url) -> None:
    async def run_it() -> None:
        async with _running(open_database(url)):
            send("ready")
            await asyncio.Event().wait()

    asyncio.run(run_it())


def _lateness(connection: Connection, begin: datetime) -> list[float]:
    r = schedule_runs.c
    rows = connection.execute(
        select(r.started_at, r.due_at).where(r.state == "running", r.due_at >= begin)
    ).all()
    doubled = select(r.schedule_id, r.fire_at).group_by(r.schedule_id, r.fire_at)
    assert connection.execute(doubled.having(func.count() > 1)).first() is None
    return [(row.started_at - row.due_at).total_seconds() for row in rows]


async def _measure_bare() -> None:
    """Measure a scheduler with as many jobs that only record their start time."""
    late: list[float] = []
    scheduler = AsyncIOScheduler(timezone=UTC)
    begin = datetime.now(UTC) + timedelta(seconds=5)

    async def note(number: int) -> None:
        due = begin + timedelta(milliseconds=number * 1_000 * SECONDS // SCHEDULES)
        late.append((datetime.now(UTC) - due).total_seconds())

    for number in range(SCHEDULES):
        due = begin + timedelta(milliseconds=number * 1_000 * SECONDS // SCHEDULES)
        trigger = IntervalTrigger(seconds=3_600, start_date=due, timezone=UTC)
        scheduler.add_job(note, trigger, args=(number,), misfire_grace_time=None)
    scheduler.start()
    await asyncio.sleep((begin - datetime.now(UTC)).total_seconds() + SECONDS + 1)
    scheduler.shutdown(wait=False)
    _report("plain APScheduler, jobs that do nothing", late)


def _report(name: str, late: list[float]) -> None:
    p99 = quantiles(late, n=100)[98]
    print(
        f"| {name} | {len(late):,} | {median(late) * 1_000:.1f} ms | {p99 * 1_000:.1f} ms "
        f"| {max(late) * 1_000:.1f} ms |",
        flush=True,
    )


if __name__ == "__main__":
    gc.tune()
    sys.exit(run(1))
