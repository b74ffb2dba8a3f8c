"""Real PgBouncer from its Debian package, without installation."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import URL

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


@contextmanager
def pooling(folder: Path, server: Postgres, database: URL, mode: str) -> Iterator[URL]:
    """Run PgBouncer in front of a database; give the URL by which a client gets there."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    known = {"server": server.port, "database": database.database, "port": port, "mode": mode}
    settings = folder / "pgbouncer.ini"
    settings.write_text(_SETTINGS.format(user=USER, password=PASSWORD, **known))
    libraries = [str(path.parent) for path in PACKAGE.glob("usr/lib/**/*.so*")]
    with settings.open() as readable:  # which its user may not find otherwise
        process = subprocess.Popen(
            [PACKAGE / "usr/sbin/pgbouncer", f"/dev/fd/{readable.fileno()}"],
            env={**os.environ, "LD_LIBRARY_PATH": ":".join(libraries)},
            pass_fds=[readable.fileno()],
            stderr=subprocess.DEVNULL,
            **server.unprivileged,
        )
    try:
        _wait_for(port, process)
        yield database.set(port=port, database="pooled")
    finally:
        process.kill()
        process.wait()


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
