"""Commands say a fault of the database in one sentence, with an exit status of their own."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tocsin.store import hold_lock, record_heartbeat

FAULT = 3


def damage(path: Path) -> None:
    """Overwrite every page but the first, as a broken disk may."""
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * (size - 4096))


@pytest.fixture
def small_disk(tmp_path):
    """The data directory on a disk of three mebibytes; making one takes the rights of root."""
    folder = tmp_path / "data"
    folder.mkdir(exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("only root may mount a small disk")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.mark.parametrize("command", ["serve", "prove", "check"])
def test_a_damaged_database_is_named_in_one_sentence(command, tocsin, on_database, tmp_path):
    on_database(lambda _connection: None)
    damage(tmp_path / "data" / "tocsin.db")
    (tmp_path / "plugins.toml").touch()
    status, _, errors = tocsin(command)
    assert status == (1 if command == "check" else FAULT)
    [line] = errors.splitlines()
    assert line.removeprefix("database: ").startswith("database damaged: ")
    assert "restore a backup" in line


@pytest.mark.parametrize("command", ["serve", "prove"])
def test_a_server_that_is_away_is_named_in_one_sentence(command, tocsin, tmp_path):
    (tmp_path / "plugins.toml").touch()
    status, _, errors = tocsin(command, TOCSIN_DATABASE_URL="postgresql://u:p@127.0.0.1:1/d")
    assert status == FAULT
    [line] = errors.splitlines()
    assert line.startswith("database unreachable: ")
    assert "sqlalche.me" not in line


@pytest.mark.parametrize("command", ["serve", "prove"])
def test_a_full_disk_is_named_in_one_sentence(command, tocsin, small_disk, migrated_file, tmp_path):
    (tmp_path / "plugins.toml").touch()
    shutil.copy(migrated_file, small_disk / "tocsin.db")
    with contextlib.suppress(OSError):
        (small_disk / "other").write_bytes(bytes(4 * 2**20))
    status, _, errors = tocsin(command)
    assert status == FAULT
    assert "free up disk space" in errors.splitlines()[-1]
    assert "Traceback" not in errors


@pytest.mark.full  # ten seconds, as long as SQLite waits for a lock; damaged pages are tried above
def test_prove_says_that_nothing_can_be_stored(tocsin, on_database, tmp_path):
    """Reading still works while another program keeps the file locked."""
    on_database(lambda _connection: None)
    other = sqlite3.connect(tmp_path / "data" / "tocsin.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    status, out, errors = tocsin("prove")
    other.close()
    assert (status, out) == (FAULT, "")
    [line] = errors.splitlines()
    assert line.startswith("database timed out: ")


def test_prove_names_a_running_node_without_a_heartbeat(tocsin, on_database, tmp_path):
    an_hour_ago = datetime.now(UTC) - timedelta(hours=1)
    on_database(record_heartbeat, 1, "soc-1:8080", [], an_hour_ago)
    assert tocsin("prove")[0] == 0  # it is gone
    with hold_lock(tmp_path / "data" / "tocsin.db"):
        status, out, _ = tocsin("prove")
    assert status == 1
    assert "UNACCOUNTED\tnode:soc-1:8080" in out
    assert "no heartbeat: the process is frozen" in out
