"""Data directory and process lock."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tocsin.errors import OperatorError


def make_private_folder(path: Path) -> None:
    """Make a folder of its owner's alone where there is none; OperatorError where that fails."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise OperatorError(
            f"the folder {path} cannot be made ({error.strerror}); set TOCSIN_DATA_DIR or "
            "TOCSIN_DATABASE_URL to where this user may write"
        ) from error


@contextmanager
def hold_lock(database: Path) -> Iterator[None]:
    """Hold the lock beside a SQLite file; OperatorError where another process has it.

    The operating system lets go of it when the process ends, however it ends.
    """
    path = database.resolve().with_suffix(".lock")
    make_private_folder(path.parent)
    with path.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read().strip() or "unknown"
            raise OperatorError(
                f"another `tocsin serve` (process {holder}) is running on this database; "
                f"stop it, or give this one a TOCSIN_DATA_DIR or TOCSIN_DATABASE_URL of its own "
                f"(lock: {path.resolve()})"
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield
