"""Three nodes of which one is killed every few seconds run every fire time of an hour, once."""

from __future__ import annotations

import asyncio
import os
import random
import sys
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import func, select

from schedule_harness import Office
from tocsin.store import Database
from tocsin.store.tables import schedules
from tocsin.testing import ManualClock
from truth.fast_node import TIME, SharedClock

BEGIN = datetime(2027, 3, 28, 0, 30, tzinfo=UTC)  # the hour in which Berlin turns its clocks
NODES = 3
RULES = {
    "every minute": {"cron": "* * * * *"},
    "every five minutes": {"cron": "*/5 * * * *", "jitter": "2m"},
    "every seven minutes": {"interval": "PT7M"},
    "at the change of clocks": {"cron": "30 2 * * *", "timezone": "Europe/Berlin"},
    "hourly": {"cron": "15 * * * *", "timezone": "Asia/Kolkata"},
}
MINUTES = [BEGIN + timedelta(minutes=n) for n in range(1, 61)]
EXPECTED = {
    "every minute": MINUTES,
    "every five minutes": [minute for minute in MINUTES if minute.minute % 5 == 0],
    "every seven minutes": [BEGIN + n * timedelta(minutes=7) for n in range(1, 9)],
    "at the change of clocks": [datetime(2027, 3, 28, 1, tzinfo=UTC)],
    "hourly": [datetime(2027, 3, 28, 0, 45, tzinfo=UTC)],
}


STEP = 0.05
"""Seconds after which the clock is put forward."""
BEHIND = timedelta(seconds=30)
"""The clock waits for a run that is overdue by as much: a slow machine is not an outage."""


class Nodes:
    """Processes that share a database and a clock."""

    def __init__(self, folder: Path, url: str, speed: float) -> None:
        self._folder, self._speed = folder, speed
        self._time = folder / "time"
        self._time.write_bytes(TIME.pack(BEGIN.timestamp()))
        self.clock = SharedClock(self._time, speed)
        self._processes: list[asyncio.subprocess.Process] = []
        self._count = 0
        (folder / "plugins.toml").write_text("enabled = []\n")
        self._environment = os.environ | {
            "TOCSIN_DATA_DIR": str(folder / "data"),
            "TOCSIN_PLUGINS_FILE": str(folder / "plugins.toml"),
            "TOCSIN_DATABASE_URL": url,
            "TOCSIN_ENCRYPTION_KEY": "A" * 43 + "=",
            "TOCSIN_PORT": "0",
            "TOCSIN_BASE_URL": "https://tocsin.example",
        }

    async def pass_time(self, database: Database) -> None:
        """Put the clock forward until cancelled, while no run is overdue."""
        while True:
            await asyncio.sleep(STEP)
            now = self.clock.now()
            due = await database.read(lambda c: c.scalar(select(func.min(schedules.c.next_run_at))))
            if due is None or due > now - BEHIND:
                self.clock.set(now + timedelta(seconds=STEP * self._speed))

    async def start(self) -> None:
        """Start one, and return when it works: on a busy machine that takes a while."""
        path = self._folder / f"serve-{self._count}.log"
        self._count += 1
        with path.open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                str(Path(__file__).with_name("fast_node.py")),
                str(self._time),
                str(self._speed),
                env=self._environment,
                stderr=log,
            )
        self._processes.append(process)
        async with asyncio.timeout(60):
            while b"started" not in path.read_bytes():
                assert process.returncode is None, path.read_text()
                await asyncio.sleep(0.05)

    async def kill(self, number: int) -> None:
        process = self._processes.pop(number)
        assert process.returncode is None
        process.kill()
        await process.wait()

    async def kill_all(self) -> None:
        while self._processes:
            await self.kill(0)


async def check_an_hour(office: Office, nodes: Nodes, copies: int) -> int:
    """Live through an hour; return how many nodes were killed meanwhile."""
    names = {}
    for number in range(copies):
        for rule, given in RULES.items():
            made = await office.make(f"{rule} {number}", overlap="queue", **given)
            names[made.id] = rule
    killed = 0
    for _ in range(NODES):
        await nodes.start()
    passing = asyncio.create_task(nodes.pass_time(office.database))
    chance = random.Random(1)
    while nodes.clock.now() < BEGIN + timedelta(minutes=62):
        await asyncio.sleep(chance.uniform(3, 6))
        await nodes.kill(chance.randrange(NODES))
        await nodes.start()
        killed += 1
    await _until_ended(office)
    passing.cancel()
    with suppress(asyncio.CancelledError):
        await passing
    await nodes.kill_all()
    ran: dict[str, list[datetime]] = {schedule_id: [] for schedule_id in names}
    runs = await office.runs()
    for run in runs:
        ran[run["schedule_id"]].append(run["fire_at"])
    end = BEGIN + timedelta(hours=1)
    for schedule_id, rule in names.items():
        assert sorted(at for at in ran[schedule_id] if at <= end) == EXPECTED[rule], rule
    assert Counter(run["state"] for run in runs) == {"completed": len(runs)}
    told = Counter(await office.told())
    assert told == {"investigation-completed": len(runs)}
    assert len(await office.sessions()) == len(runs)
    return killed


async def _until_ended(office: Office) -> None:
    async with asyncio.timeout(120):
        while {"running", "waiting"} & set(await office.states()):  # noqa: ASYNC110 - other processes end them
            await asyncio.sleep(0.5)


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
async def test_an_hour_is_run_once_though_nodes_are_killed(migrated_url, database, tmp_path):
    nodes = Nodes(tmp_path, migrated_url.render_as_string(hide_password=False), speed=15)
    office = Office(database, ManualClock(BEGIN))
    killed = await check_an_hour(office, nodes, copies=4)
    assert killed > 15  # as a node takes seconds to start, more on a fast machine
