"""Real PgBouncer from its Debian package, without installation."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import URL

from ports import free_port
from postgres import PASSWORD, USER, Postgres

PACKAGE = Path(
    os.environ.get("TOCSIN_PGBOUNCER", Path(__file__).parents[1] / ".components" / "pgbouncer")
)
"""Where the package is unpacked; `.ci/components` does that."""

WHY_NOT = (
    None
    if (PACKAGE / "usr/sbin/pgbouncer").is_file()
    else f"no PgBouncer is unpacked in {PACKAGE}; run .ci/components, or set TOCSIN_PGBOUNCER"
)
"""Why there is no real PgBouncer to test with, None where there is one."""

_SETTINGS = """
[databases]
pooled = host=127.0.0.1 port={server} dbname={database} user={user} password={password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = {mode}
"""


class PgBouncer:
    """PgBouncer in front of a database; `url` is where clients get there."""

    def __init__(
        self, folder: Path, server: Postgres, database: URL, mode: str, settings: Mapping[str, str]
    ) -> None:
        port = free_port()
        self.url = database.set(port=port, database="pooled")
        self._port = port
        self._server = server
        self._settings = folder / "pgbouncer.ini"
        known = {"server": server.port, "database": database.database, "port": port, "mode": mode}
        more = "".join(f"{name} = {value}\n" for name, value in settings.items())
        self._settings.write_text(_SETTINGS.format(user=USER, password=PASSWORD, **known) + more)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and return once it takes connections."""
        libraries = [str(path.parent) for path in PACKAGE.glob("usr/lib/**/*.so*")]
        with self._settings.open() as readable:  # which its user may not find otherwise
            self._process = subprocess.Popen(
                [PACKAGE / "usr/sbin/pgbouncer", f"/dev/fd/{readable.fileno()}"],
                env={**os.environ, "LD_LIBRARY_PATH": ":".join(libraries)},
                pass_fds=[readable.fileno()],
                stderr=subprocess.DEVNULL,
                **self._server.unprivileged,
            )
        _wait_for(self._port, self._process)

    def kill(self) -> None:
        """End it with all of its connections."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


@contextmanager
def pooling(
    folder: Path, server: Postgres, database: URL, mode: str, **settings: str
) -> Iterator[PgBouncer]:
    """Run PgBouncer in front of a database, with further settings of its own."""
    pooler = PgBouncer(folder, server, database, mode, settings)
    try:
        pooler.start()
        yield pooler
    finally:
        pooler.kill()


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    raise RuntimeError("PgBouncer does not take connections")
