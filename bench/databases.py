"""Databases for benchmarks, with the durability of production."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from sqlalchemy import URL, Connection, make_url

from tocsin.store import Database, open_database, upgrade

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from postgres import PASSWORD, Postgres

KINDS = ("SQLite", "PostgreSQL")
NewUrl = Callable[[], URL]
Keep = Callable[[str, Callable[[URL], None]], URL]
"""Returns the URL of the database of this name, which a function has filled, now or earlier."""


class DurablePostgres(Postgres):
    """Server on the disk with PostgreSQL's default settings: a commit is on disk."""

    def _find_room(self) -> str | None:
        return None  # tests take a folder in memory, if there is one

    def start(self) -> None:
        options = f"-h 127.0.0.1 -p {self.port} -k {self.home}"
        self._control("start", "-o", options, "-l", self.home / "log")
        self._connect()

    def add_superuser(self, role: str) -> None:
        """Add a role that may do everything, with the password of the others."""
        self.execute(f"CREATE ROLE {role} SUPERUSER LOGIN PASSWORD '{PASSWORD}'")

    def stop(self) -> None:
        self._runner.run(self._connection.close())
        self._runner.close()
        self._control("stop", "-m", "fast")

    def _control(self, *command: object) -> None:
        program = [self.binaries / "pg_ctl", "-D", self.home / "data", "-s", *command]
        subprocess.run(program, cwd=self.home, check=True, **self.unprivileged)


class KeptPostgres(DurablePostgres):
    """Server whose databases remain in a folder when it has ended."""

    def __init__(self, folder: Path, home: Path) -> None:
        super().__init__(folder)
        self._kept = home

    def _make_home(self) -> Path:
        self._kept.mkdir(parents=True, exist_ok=True)
        return self._kept

    def _remove_home(self) -> None:
        pass


@contextmanager
def new_urls(kind: str) -> Iterator[NewUrl]:
    """Yield a function that returns the URL of a new, empty database at each call."""
    numbers = count()
    with TemporaryDirectory(prefix="tocsin-bench-") as name:
        folder = Path(name)
        if kind == "SQLite":
            yield lambda: URL.create("sqlite", database=f"{folder}/{next(numbers)}/tocsin.db")
            return
        with DurablePostgres(folder) as server:
            yield lambda: make_url(server.create(f"bench_{next(numbers)}"))


@contextmanager
def kept_databases(kind: str, folder: Path) -> Iterator[Keep]:
    """Yield a function that fills each database once, and keeps it in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)  # the server may run as another user
    if kind == "SQLite":

        def create_file(name: str) -> None:
            shutil.rmtree(folder / name, ignore_errors=True)

        def find_file(name: str) -> URL:
            return URL.create("sqlite", database=f"{folder / name}/tocsin.db")

        yield partial(_keep, folder, create_file, find_file)
        return
    with (
        TemporaryDirectory(prefix="tocsin-bench-") as place,
        KeptPostgres(Path(place), folder / "postgres") as server,
    ):

        def create(name: str) -> None:
            server.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
            server.create(name)

        yield partial(_keep, folder, create, lambda name: make_url(server.dsn(name)))


def _keep(
    folder: Path,
    create: Callable[[str], object],
    find: Callable[[str], URL],
    name: str,
    fill: Callable[[URL], None],
) -> URL:
    filled = folder / f"{name}.filled"
    if not filled.exists():
        create(name)
        fill(find(name))
        filled.touch()
    return find(name)


async def open_new(new_url: NewUrl) -> Database:
    """Return a new, open database with the current schema."""
    database = open_database(await asyncio.to_thread(new_url))
    await upgrade(database)
    return database


def settle(connection: Connection) -> None:
    """Run what databases do within minutes by themselves, outside of a transaction."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("VACUUM ANALYZE")
        # loading thousands of incidents in one transaction leaves a version of these rows for each
        connection.exec_driver_sql("VACUUM FULL incident_counts")
        connection.exec_driver_sql("CHECKPOINT")
    else:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").close()
