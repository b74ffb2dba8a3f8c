"""Commands say a fault of the database in one sentence, with an exit status of their own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

FAULT = 3


def damage(path: Path) -> None:
    """Overwrite every page but the first, as a broken disk may."""
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * (size - 4096))


@pytest.fixture
def small_disk(tmp_path):
    """The data directory on a disk of half a mebibyte; making one takes the rights of root."""
    folder = tmp_path / "data"
    folder.mkdir(exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("only root may mount a small disk")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


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


def test_a_full_disk_is_named_in_one_sentence(tocsin, small_disk, tmp_path):
    (tmp_path / "plugins.toml").touch()
    (small_disk / "other").write_bytes(bytes(400_000))
    status, _, errors = tocsin("serve")
    assert status == FAULT
    assert "free space on its disk" in errors.splitlines()[-1]
    assert "Traceback" not in errors
