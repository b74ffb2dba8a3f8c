"""Data directory and process lock."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tocsin.errors import OperatorError
from tocsin.store.faults import DatabaseFailure, DatabaseFault


def make_private_folder(path: Path) -> None:
    """Create a folder that only its owner can access; raises OperatorError on failure."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise OperatorError(
            f"cannot create the directory {path} ({error.strerror}); set TOCSIN_DATA_DIR or "
            "TOCSIN_DATABASE_URL to a location that this user can write to"
        ) from error


def _lock_path(database: Path) -> Path:
    return database.resolve().with_suffix(".lock")


def is_locked(database: Path) -> bool:
    """Return whether any process, even this one, holds the lock file of a SQLite database."""
    try:
        with _lock_path(database).open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        pass
    return False


@contextmanager
def hold_lock(database: Path) -> Iterator[None]:
    """Hold the lock file of a SQLite database; OperatorError if another process holds it.

    Raises DatabaseFailure where the disk is full or broken.

    The operating system releases the lock when the process ends, in any way. Only the owner can
    open the file: another user who could read it could hold the lock and block the service.
    """
    path = _lock_path(database)
    make_private_folder(path.parent)
    with open(path, "a+", opener=_open_privately) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read().strip() or "unknown"
            raise OperatorError(
                f"another `tocsin serve` (process {holder}) is running on this database; "
                f"stop it, or set a different TOCSIN_DATA_DIR or TOCSIN_DATABASE_URL for this one "
                f"(lock: {path.resolve()})"
            ) from None
        _note_holder(file.fileno(), path)
        yield


def _note_holder(descriptor: int, path: Path) -> None:
    """Write the number of this process; raises DatabaseFailure where the disk does not take it."""
    try:
        os.ftruncate(descriptor, 0)
        os.write(descriptor, str(os.getpid()).encode())
    except OSError as error:
        is_full = error.errno in {errno.ENOSPC, errno.EDQUOT}
        fault = DatabaseFault.FULL if is_full else DatabaseFault.IO_ERROR
        raise DatabaseFailure(f"{path}: {error.strerror}", fault) from error


def _open_privately(path: str, flags: int) -> int:
    descriptor = os.open(path, flags, 0o600)
    os.fchmod(descriptor, 0o600)  # it may exist, with more permissions
    return descriptor
