"""Two nodes on PostgreSQL are upgraded one after the other, under load."""

from __future__ import annotations

import asyncio
import subprocess
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import aiohttp
import pytest
from sqlalchemy import URL, make_url

from end_to_end.service import Receiver, Sensor, Service, until
from tocsin.store import get_newest_revision

ROOT = Path(__file__).parents[2]
PACKAGES = ("core", "plugins", "connectors", "templates")


@pytest.fixture
def previous_code(tmp_path) -> str:
    """The PYTHONPATH of the code before the newest migration; skips where git has no history."""
    migration = f"core/tocsin/store/migrations/versions/r{get_newest_revision()}_*.py"
    try:
        added = run_git("log", "--format=%H", "--diff-filter=A", "--", migration).split()
        archive = run_git("archive", f"{added[-1].decode()}^", *PACKAGES)
    except (OSError, IndexError, subprocess.CalledProcessError):
        pytest.skip("the code of the previous schema is in the history of the repository")
    folder = tmp_path / "previous"
    folder.mkdir()
    subprocess.run(["tar", "-x", "-C", folder], input=archive, check=True)
    return ":".join(str(folder / name) for name in PACKAGES)


def run_git(*arguments: str) -> bytes:
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, check=True, capture_output=True).stdout


class Callers:
    """Calls the API of nodes all the time, and counts the answers."""

    def __init__(self, key: str) -> None:
        self._headers = {"X-API-Key": key}
        self.answers: Counter[int] = Counter()
        self.cut = 0
        self._tasks: list[asyncio.Task[None]] = []

    def call(self, node: Service) -> None:
        self._tasks.append(asyncio.create_task(self._call(node)))

    async def _call(self, node: Service) -> None:
        async with aiohttp.ClientSession(headers=self._headers) as session:
            while True:
                try:
                    async with session.get(f"{node.url}/api/v1/incidents?limit=5") as response:
                        await response.read()
                        self.answers[response.status] += 1
                except aiohttp.ClientError:
                    self.cut += 1
                await asyncio.sleep(0.05)

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def write_steadily(sensor: Sensor) -> None:
    while True:
        sensor.write(5)
        await asyncio.sleep(0.2)


@pytest.fixture
def url(postgres) -> Iterator[URL]:
    yield make_url(postgres.create("rolling"))
    postgres.drop("rolling")


@pytest.fixture
async def make_node(tmp_path, url) -> AsyncIterator[Callable[..., Service]]:
    """Make nodes of the current code, or of the code at a PYTHONPATH."""
    made: list[Service] = []

    def make(name: str, receiver: Receiver, code: str | None = None) -> Service:
        node = Service(tmp_path, url, receiver.destination)
        node.log = tmp_path / f"{name}.log"
        node.environment |= {"TOCSIN_RATE_LIMIT": "100000", "TOCSIN_RATE_BURST": "100000"}
        if code is not None:
            node.environment["PYTHONPATH"] = code
        made.append(node)
        return node

    yield make
    for node in made:
        await node.kill()


@pytest.mark.full
@pytest.mark.timeout(400)
async def test_an_upgrade_under_load_loses_and_doubles_nothing(
    tmp_path, url, previous_code, make_node
):
    sensor = Sensor(tmp_path / "eve.json")
    async with Receiver() as receiver:
        old = [make_node(f"old-{number}", receiver, previous_code) for number in (1, 2)]
        new = [make_node(f"new-{number}", receiver) for number in (1, 2)]
        status, _, errors = await old[0].command("db", "upgrade")
        assert status == 0, errors
        await old[0].start()
        await old[1].start(is_applied=True)
        status, _, errors = await new[0].command("check")
        assert (status, "run `tocsin db upgrade`" in errors) == (1, True)
        callers = Callers(await old[0].make_key())
        load = asyncio.create_task(write_steadily(sensor))
        for node in old:
            callers.call(node)
        await until(lambda: len(receiver.received) > 20)
        status, out, errors = await new[0].command("db", "upgrade")
        assert status == 0, errors
        assert out.splitlines()[-1].startswith(get_newest_revision())
        so_far = len(receiver.received)
        await until(lambda: len(receiver.received) > so_far + 20)  # by the old nodes
        for before, after in zip(old, new, strict=True):
            assert await before.stop() == 0
            await after.start(is_applied=True)
            callers.call(after)
            so_far = len(receiver.received)
            await until(lambda count=so_far: len(receiver.received) > count + 20)
        load.cancel()
        await asyncio.gather(load, return_exceptions=True)
        await until(lambda: len(receiver.numbers) == sensor.written, 60)
        await callers.stop()
        titles = Counter(event["data"]["title"] for _, event in receiver.received)
        assert set(titles.values()) == {1}
        assert len(receiver.received) == sensor.written
        assert set(callers.answers) == {200}, callers.answers
        status, out, _ = await new[0].command("prove")
        assert status == 0, out
        for node in new:
            assert await node.stop() == 0
