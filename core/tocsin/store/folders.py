"""The folders that Tocsin keeps its own things in."""

from __future__ import annotations

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
