"""Databases that go back in time, or vanish, under nodes that know better."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path

import asyncpg
import pytest
import structlog
from sqlalchemy import URL, make_url, update

from end_to_end.service import until
from incident_rows import add_incidents
from ports import free_port
from tocsin.accounting import Period, report_period
from tocsin.clock import SystemClock
from tocsin.node import ServiceNode, open_node
from tocsin.node.head import HeadKeeper
from tocsin.settings import Settings
from tocsin.store import JUMP, DatabaseReplaced, HeadFile, UnusableDatabaseError, load_head
from tocsin.store.tables import sequences

from .conftest import HastyClock

on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
on_postgresql = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)


def remove(*paths: str) -> None:
    for path in paths:
        Path(path).unlink(missing_ok=True)


class Archive:
    """A database of which a copy can be made, and be put in its place."""

    def __init__(self, url: URL, postgres) -> None:
        self.url = url
        self._postgres = postgres
        self._name = str(url.database)

    def copy(self) -> None:
        if self._postgres is None:
            shutil.copy(self._name, f"{self._name}.copy")
        else:
            self._postgres.create(f"{self._name}-copy", self._name)

    def restore(self) -> None:
        """Put the copy in place of the database, whoever uses it."""
        if self._postgres is None:
            remove(f"{self._name}-wal", f"{self._name}-shm")
            Path(f"{self._name}.copy").replace(self._name)
        else:
            self._postgres.drop(self._name)
            self._postgres.create(self._name, f"{self._name}-copy")

    def drop(self) -> None:
        if self._postgres is not None:
            for name in (self._name, f"{self._name}-copy"):
                with suppress(asyncpg.InvalidCatalogNameError):
                    self._postgres.drop(name)


@pytest.fixture(params=["sqlite", "postgresql"])
def archive(request, tmp_path):
    if request.param == "sqlite":
        path = shutil.copy(request.getfixturevalue("migrated_file"), tmp_path / "tocsin.db")
        yield Archive(URL.create("sqlite", database=str(path)), None)
        return
    postgres = request.getfixturevalue("postgres")
    url = make_url(postgres.create("going-back", request.getfixturevalue("migrated")))
    archive = Archive(url, postgres)
    yield archive
    archive.drop()


@pytest.fixture
def settings(tmp_path, archive) -> Settings:
    (tmp_path / "plugins.toml").write_text("")
    return Settings(
        data_dir=tmp_path / "data",
        database_url=archive.url.render_as_string(hide_password=False),
        plugins_file=tmp_path / "plugins.toml",
        encryption_key="A" * 43 + "=",
        port=free_port(),
    )


@asynccontextmanager
async def running(settings: Settings) -> AsyncIterator[tuple[ServiceNode, asyncio.Task[None]]]:
    """Give a node that runs, and the task that runs it."""
    async with open_node(settings, HastyClock()) as node:
        stop = asyncio.Event()
        task = asyncio.create_task(node.run(stop))
        async with asyncio.timeout(20):
            while not all(node.state.roles.values()):  # noqa: ASYNC110 - another task starts them
                await asyncio.sleep(0.01)
        yield node, task
        stop.set()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_database_that_was_replaced_by_an_older_copy_issues_no_number_twice(
    archive, settings
):
    async with open_node(settings) as node:
        await node.database.write(add_incidents, 3)
    await asyncio.to_thread(archive.copy)
    async with open_node(settings) as node:
        await node.database.write(add_incidents, 5)
        await node.head.check()
    await asyncio.to_thread(archive.restore)
    with structlog.testing.capture_logs() as logs:
        async with open_node(settings) as node:
            assert await node.database.write(add_incidents) == [8 + JUMP + 1]
            now = SystemClock().now()
            proof = await node.database.read(
                report_period, Period(now - timedelta(days=1), now), now
            )
    [line] = [line for line in logs if line["log_level"] == "error"]
    assert line["event"].startswith("database rolled back")
    [loss] = [item for item in proof["unaccounted"] if item["kind"] == "rolled-back"]
    assert loss["what"] == "epoch:2"
    assert loss["detail"].startswith("incidents 4 to 8 were stored but are missing")
    with structlog.testing.capture_logs() as logs:
        async with open_node(settings) as node:
            assert (await node.database.read(load_head)).epoch == 2
    assert [line for line in logs if line["log_level"] == "error"] == []


async def test_a_node_under_which_the_database_goes_back_ends_and_issues_no_number_twice(
    archive, settings
):
    async with open_node(settings) as node:
        await node.database.write(add_incidents, 3)
    await asyncio.to_thread(archive.copy)
    async with running(settings) as (node, task):
        await node.database.write(add_incidents, 5)
        await node.head.check()
        await asyncio.to_thread(archive.restore)
        with pytest.raises(UnusableDatabaseError, match=r"was rolled back|removed or replaced"):
            await asyncio.wait_for(task, 20)
    async with open_node(settings) as node:
        assert await node.database.write(add_incidents) == [8 + JUMP + 1]


@on_postgresql
async def test_a_server_that_loses_its_last_commits_issues_none_of_their_numbers_again(
    tmp_path, database
):
    keeper = HeadKeeper(HeadFile(tmp_path / "data", "here"), database, SystemClock())
    await keeper.start()
    assert await database.write(add_incidents, 5) == [1, 2, 3, 4, 5]
    lose = update(sequences).where(sequences.c.name.like("incident\\_%")).values(value=3)
    await database.write(lambda connection: connection.execute(lose) and None)
    with pytest.raises(DatabaseReplaced, match="5 had been issued, the next one would be 4"):
        await database.write(add_incidents)
    with pytest.raises(DatabaseReplaced, match="had reached incident 5"):
        await keeper.check()


@pytest.mark.full
@on_sqlite
async def test_a_file_that_is_removed_ends_the_node_and_the_next_one_says_what_is_missing(
    make_service, receiver, sensor
):
    node = make_service(receiver.destination(retry_schedule=["100ms"] * 3))
    await node.start()
    sensor.write(5)
    await until(lambda: len(receiver.oracle.accepted("soc")) == 5)
    await asyncio.sleep(1.5)  # until the head is stored
    remove(str(node.database.database))
    assert await asyncio.wait_for(node.wait(), 20) == 3
    assert "was removed or replaced while in use" in node.log.read_text()
    await node.start()
    assert "database created" in node.log.read_text()
    sensor.write(1)
    await until(lambda: len(receiver.oracle.accepted("soc")) > 10)
    status, out, _ = await node.command("prove", "--head")
    assert (status, [line.split("\t")[0] for line in out.splitlines()][:2]) == (0, ["epoch"] * 2)
    status, out, _ = await node.command("prove")
    assert status == 1
    assert "rolled-back" in out


@pytest.mark.full
@on_sqlite
async def test_a_log_that_is_deleted_after_a_kill_is_found_at_the_next_start(
    make_service, receiver, sensor
):
    node = make_service(receiver.destination(retry_schedule=["100ms"] * 3))
    await node.start()
    sensor.write(5)
    await until(lambda: len(receiver.oracle.accepted("soc")) == 5)
    await asyncio.sleep(1.5)  # until the head is stored
    await node.kill()
    remove(f"{node.database.database}-wal")
    status, out, _ = await node.command("prove", "--head")
    assert (status, "UNACCOUNTED" in out) == (1, True)
    await node.start()
    log = node.log.read_text()
    assert "was rolled back" in log or "no database" in log
    sensor.write(1)
    await until(lambda: len(receiver.oracle.accepted("soc")) > 6)
    assert (await node.command("prove"))[0] == 1
