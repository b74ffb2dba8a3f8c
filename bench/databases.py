"""Databases for benchmarks, with the durability of production."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from sqlalchemy import URL, Connection, make_url

from tocsin.store import Database, open_database, upgrade

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from postgres import PASSWORD, Postgres

KINDS = ("SQLite", "PostgreSQL")
NewUrl = Callable[[], URL]


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


async def open_new(new_url: NewUrl) -> Database:
    """Return a new, open database with the current schema."""
    database = open_database(await asyncio.to_thread(new_url))
    await upgrade(database)
    return database


def settle(connection: Connection) -> None:
    """Run what databases do within minutes by themselves, outside of a transaction."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("VACUUM ANALYZE")
        connection.exec_driver_sql("CHECKPOINT")
    else:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").close()
