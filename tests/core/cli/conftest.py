"""A running API, and commands that are run as an operator runs them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from running_api import api

__all__ = ["api"]


@pytest.fixture
def tocsin(tmp_path: Path):
    """Run a command in a folder of its own, and return status, output and errors."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("TOCSIN_")
    }

    def run(*arguments: str, **variables: str) -> tuple[int, str, str]:
        result = subprocess.run(
            [sys.executable, "-W", "error", "-m", "tocsin", *arguments],
            cwd=tmp_path,
            env={**environment, **variables},
            capture_output=True,
            text=True,
            check=False,
        )
        return result.returncode, result.stdout, result.stderr

    return run
