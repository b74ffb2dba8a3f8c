"""`tocsin serve` ends on SIGTERM whatever it waits for, and says so where that was forced."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pgbouncer import WHY_NOT, pooling

FORCED = 4
_HASTY = """
import tocsin.cli.serve as serve
serve.GRACEFUL_SECONDS, serve.FORCED_SECONDS = 0.3, 0.3
from tocsin.cli import main
main()
"""
_BLOCKED = _HASTY.replace(
    "from tocsin.cli",
    """
import time
from tocsin.node import process
def block(_):
    print("blocked", flush=True)
    time.sleep(60)
process.ServiceNode._log_start = block
from tocsin.cli""",
)


@contextmanager
def serving(folder: Path, script: str = _HASTY, **variables: str) -> Iterator[subprocess.Popen]:
    """Run the service; the time for a graceful stop is a fraction of a second."""
    folder.joinpath("plugins.toml").touch()
    own = {name: value for name, value in os.environ.items() if not name.startswith("TOCSIN_")}
    process = subprocess.Popen(
        [sys.executable, "-c", script, "serve"],
        cwd=folder,
        env={**own, "TOCSIN_PORT": "0", **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def silent_server():
    """A server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def test_waiting_for_a_database_at_the_start_ends_on_a_signal(tmp_path, silent_server):
    url = f"postgresql://u:p@127.0.0.1:{silent_server.getsockname()[1]}/d"
    key = {"TOCSIN_ENCRYPTION_KEY": "A" * 43 + "="}
    with serving(tmp_path, TOCSIN_DATABASE_URL=url, **key) as process:
        connection, _ = silent_server.accept()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=5) == 0
        connection.close()


@pytest.mark.full
def test_what_does_not_end_by_itself_is_ended_with_a_status_of_its_own(tmp_path):
    """A loop that is blocked hears of no cancellation, nor of a signal."""
    with serving(tmp_path, _BLOCKED) as process:
        assert process.stdout.readline() == "blocked\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=10) == FORCED
        assert "shutdown forced" in process.stderr.read()


@pytest.mark.full  # tests/core/store/test_poolers.py tries each mode without a process of its own
@pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))
@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_a_pooler_that_shares_sessions_ends_the_start_with_a_sentence(
    tmp_path, migrated_url, postgres
):
    with pooling(tmp_path, postgres, migrated_url, "transaction") as pooler:
        given = {"TOCSIN_DATABASE_URL": pooler.url.render_as_string(hide_password=False)}
        with serving(tmp_path, TOCSIN_ENCRYPTION_KEY="A" * 43 + "=", **given) as process:
            assert process.wait(timeout=60) == 2
            [line] = process.stderr.read().splitlines()
    assert line.startswith("TOCSIN_DATABASE_URL: found a connection pooler")
