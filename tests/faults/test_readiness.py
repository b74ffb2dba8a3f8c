"""`/readyz` of a running node in states in which nothing can be stored or delivered."""

# ruff: noqa: ASYNC110 - it waits for another process
from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import aiohttp
import asyncpg
import pytest
from sqlalchemy import URL, make_url
from sqlalchemy.exc import DBAPIError

from end_to_end.service import Service, until
from tocsin.store import DatabaseFault, DatabaseProbe, open_database, probe, require_writable
from tocsin.store.probe import write_as_intake

from .test_silent_nodes import silent_node

on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
on_postgresql = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)


@pytest.fixture
async def readiness(make_service, receiver):
    """A running node's status at `/readyz`, and what it says."""
    service = make_service(receiver.destination(retry_schedule=["100ms"] * 3))
    await service.start()
    async with aiohttp.ClientSession() as session:

        async def ask() -> tuple[int, dict]:
            async with session.get(f"{service.url}/readyz") as response:
                return response.status, await response.json()

        ask.service = service
        yield ask


async def until_fault(readiness, fault: str | None, seconds: float = 20) -> dict:
    async with asyncio.timeout(seconds):
        while (answer := await readiness())[1]["fault"] != fault:
            await asyncio.sleep(0.2)
    assert answer[0] == (200 if fault is None and not answer[1]["stalled"] else 503)
    return answer[1]


def damage(path: Path, *tables: str) -> None:
    """Overwrite the first page of tables, and have the node read its pages again."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        query = "SELECT rootpage FROM sqlite_schema WHERE name = ?"
        pages = [connection.execute(query, [table]).fetchone()[0] for table in tables]
        with path.open("r+b") as file:
            for page in pages:
                file.seek((page - 1) * 4096)
                file.write(b"\xa5" * 4096)
        connection.execute("UPDATE sequences SET value = value")
        connection.commit()


@pytest.mark.full  # waits for locks; tests/core/store/test_probe.py tries the same without waiting
@on_postgresql
async def test_faults_of_postgresql(readiness, migrated_url):
    """One start for all: a lock of a frozen node, a locked table, a server that is read-only."""
    await until_fault(readiness, None)
    async with silent_node(migrated_url, "freeze"):
        await until_fault(readiness, "timed-out")
    await until_fault(readiness, None)
    outside = await asyncpg.connect(migrated_url.render_as_string(hide_password=False))
    async with outside.transaction():
        await outside.execute("LOCK TABLE incidents IN SHARE MODE")
        await until_fault(readiness, "timed-out")
    await until_fault(readiness, None)
    name = migrated_url.database
    await outside.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
    await outside.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE pid <> pg_backend_pid() AND datname = current_database()"
    )
    await until_fault(readiness, "read-only")
    await outside.execute("SET default_transaction_read_only = off")
    await outside.execute(f'ALTER DATABASE "{name}" RESET ALL')
    await outside.close()


@pytest.mark.full  # likewise
@on_sqlite
async def test_a_locked_file(readiness, migrated_url):
    other = sqlite3.connect(str(migrated_url.database), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    await until_fault(readiness, "timed-out")
    other.close()
    await until_fault(readiness, None)


@pytest.fixture
def mount_disk():
    """Mount a small disk that belongs to a user; making one takes the rights of root."""
    with contextlib.ExitStack() as stack:

        def mount(size: str, user: int) -> Path:
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="tocsin-disk-")))
            folder.chmod(0o755)
            options = f"size={size},uid={user},mode=700"
            command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
            is_root = os.geteuid() == 0
            if not is_root or subprocess.run(command, check=False, capture_output=True).returncode:
                pytest.skip("only root may mount a small disk")
            stack.callback(subprocess.run, ["umount", "--lazy", str(folder)], check=True)
            return folder

        yield mount


@pytest.mark.full  # fills a disk; the class of its error is tried in tests/core/web
async def test_a_full_disk(tmp_path, mount_disk, receiver, sensor):
    small_disk = mount_disk("3m", os.geteuid())
    url = URL.create("sqlite", database=str(small_disk / "tocsin.db"))
    service = Service(tmp_path, url, receiver.destination(retry_schedule=["100ms"] * 3))
    await service.start()
    try:
        sensor.write(2000)
        with contextlib.suppress(OSError):
            (small_disk / "other").write_bytes(bytes(3 * 2**20))
        async with aiohttp.ClientSession() as session, asyncio.timeout(60):
            while True:
                async with session.get(f"{service.url}/readyz") as response:
                    answer = await response.json()
                if answer["fault"] == "full":
                    break
                await asyncio.sleep(0.2)
        assert response.status == 503
    finally:
        await service.kill()


@pytest.fixture
def small_database(postgres, migrated, mount_disk):
    """A database on a disk of its own: the folder of the disk, and the URL."""
    folder = mount_disk("80m", postgres.unprivileged.get("user", os.geteuid()))
    postgres.execute(f"CREATE TABLESPACE small LOCATION '{folder}'")
    postgres.execute(f'CREATE DATABASE small TEMPLATE "{migrated}" TABLESPACE small')
    yield folder, postgres.dsn("small")
    postgres.drop("small")
    postgres.execute("DROP TABLESPACE small")


@pytest.mark.full  # fills a disk
async def test_a_full_disk_of_postgresql(small_database, monkeypatch):
    """Rows can still be updated, but none can be added."""
    monkeypatch.setattr(probe, "PROBE_INTERVAL", 0.0)
    folder, url = small_database
    database = open_database(make_url(url))
    probing = DatabaseProbe(database)
    assert await probing.check() is None
    with contextlib.suppress(OSError):
        (folder / "other").write_bytes(bytes(80 * 2**20))
    await database.write(write_as_intake)
    probing._tests_space_at = 0.0  # it tests the disk once a minute
    for _ in range(2):
        assert await probing.check() is DatabaseFault.FULL
    with pytest.raises(DBAPIError, match="No space left on device"):
        await require_writable(database)
    (folder / "other").unlink()
    assert await probing.check() is None
    await database.close()


@pytest.mark.full  # starts a service to damage its file
@on_sqlite
async def test_damaged_pages(readiness, migrated_url, sensor, receiver):
    sensor.write(1)
    await until(lambda: bool(receiver.oracle.accepted("soc")))
    await asyncio.to_thread(damage, Path(str(migrated_url.database)), "events")
    await until_fault(readiness, "damaged")
    assert "database disk image is malformed" in readiness.service.log.read_text()
