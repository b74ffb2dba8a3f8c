"""Real PostgreSQL server with a replica that can be promoted."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

from postgres import PASSWORD, USER, Postgres


class ReplicatedPostgres(Postgres):
    """A server that replicas can copy and follow."""

    settings = ("fsync=off", "jit=off", "autovacuum=off", "wal_level=replica", "max_wal_senders=4")

    def require_replica(self) -> None:
        """Commit only what a replica has, from now on."""
        self.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        self.reload()

    def crash(self) -> None:
        """End it at once, with what it has not sent to its replica."""
        self._leave_connections()
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait(timeout=30)


class Replica(ReplicatedPostgres):
    """A server that follows another one."""

    def __init__(self, folder: Path, primary: Postgres) -> None:
        super().__init__(folder)
        self._primary = primary

    def __enter__(self) -> Self:
        """Copy the primary and follow it."""
        self.folder.chmod(0o755)
        self._home = TemporaryDirectory(prefix="tocsin-replica-", dir=self._find_room())
        self.home = Path(self._home.name)
        self.binaries = self._primary.binaries
        if "user" in self.unprivileged:
            os.chown(self.home, self.unprivileged["user"], self.unprivileged["group"])
        source = self._primary.dsn("postgres")
        options = ["-D", self.home / "data", "-R", "-X", "stream", "-c", "fast", "--no-sync"]
        subprocess.run(
            [self.binaries / "pg_basebackup", "-d", source, *options],
            cwd=self.home,
            check=True,
            capture_output=True,
            **self.unprivileged,
        )
        self.start()
        return self

    def stop_following(self) -> None:
        """Receive nothing more from the primary."""
        self.execute("ALTER SYSTEM SET primary_conninfo = ''")
        self.reload()

    def hold_back(self, hold: bool = True) -> None:
        """Receive, but do not apply, what the primary sends; apply it again."""
        self.execute(f"SELECT pg_wal_replay_{'pause' if hold else 'resume'}()")

    def freeze(self) -> None:
        """Stop all of its processes."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let its processes continue."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        server = self.process.pid
        children = Path(f"/proc/{server}/task/{server}/children").read_text().split()
        for process in (server, *map(int, children)):
            os.kill(process, number)

    def promote(self) -> None:
        """Take writes from now on."""
        self.execute("SELECT pg_promote()")


@contextmanager
def replicating(folder: Path) -> Iterator[tuple[ReplicatedPostgres, Replica]]:
    """Run a primary and a replica of it."""
    for name in ("primary", "replica"):
        (folder / name).mkdir()
    with (
        ReplicatedPostgres(folder / "primary") as primary,
        Replica(folder / "replica", primary) as replica,
    ):
        yield primary, replica


def name_both(primary: Postgres, replica: Postgres, database: str) -> str:
    """Return the URL of a database with both servers."""
    hosts = f"127.0.0.1:{primary.port},127.0.0.1:{replica.port}"
    return f"postgresql://{USER}:{PASSWORD}@{hosts}/{database}?connect_timeout=2"
