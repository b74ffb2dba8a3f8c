"""One service per embedded database."""

from __future__ import annotations

import os

import pytest

from tocsin.errors import OperatorError
from tocsin.store import hold_lock


def test_a_database_is_held_once_by_whatever_name(tmp_path, monkeypatch):
    path = tmp_path / "tocsin.db"
    path.touch()
    (tmp_path / "link.db").symlink_to(path)
    monkeypatch.chdir(tmp_path)
    with hold_lock(path):
        for name in (path, path.relative_to(tmp_path), tmp_path / "link.db"):
            with pytest.raises(OperatorError, match=f"process {os.getpid()}"), hold_lock(name):
                pass
    with hold_lock(path):
        pass


@pytest.mark.parametrize("before", [None, 0o644])
def test_only_the_owner_can_open_the_lock_and_so_hold_it(tmp_path, before):
    lock = tmp_path / "tocsin.lock"
    if before is not None:
        lock.touch()
        lock.chmod(before)
    with hold_lock(tmp_path / "tocsin.db"):
        assert lock.stat().st_mode & 0o777 == 0o600


def test_a_folder_that_cannot_be_made_is_named_with_its_setting(tmp_path):
    (tmp_path / "file").touch()
    lock = hold_lock(tmp_path / "file" / "data" / "tocsin.db")
    with pytest.raises(OperatorError, match="TOCSIN_DATA_DIR"), lock:
        pass
