"""Fixtures that run commands as an operator does, on a database of their own."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import commands
from tocsin.store.sqlite import make_engine


@pytest.fixture
def tocsin(tmp_path: Path):
    """Run a command in a folder of its own, and return status, output and errors."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("TOCSIN_")
    }

    def run(*arguments: str, **variables: str) -> tuple[int, str, str]:
        return commands.run(arguments, tmp_path, {**environment, **variables})

    return run


@pytest.fixture
def on_database(tmp_path: Path, migrated_file: Path):
    """Run work on the database that the commands find, as one transaction."""
    (tmp_path / "data").mkdir()
    engine = make_engine(shutil.copy(migrated_file, tmp_path / "data" / "tocsin.db"))

    def run(work, *arguments, **members):
        with engine.connect() as connection:
            connection.exec_driver_sql("BEGIN")
            result = work(connection, *arguments, **members)
            connection.exec_driver_sql("COMMIT")
            return result

    yield run
    engine.dispose()
