"""Command line of the benchmarks; their results are not tested."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_every_part_of_the_benchmarks_can_be_asked_for():
    command = [sys.executable, "-m", "bench", "--help"]
    result = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    for part in (
        "http",
        "delivery",
        "sync",
        "paginated-api",
        "extraction",
        "investigation",
        "sync-large",
        "verdicts",
    ):
        assert part in result.stdout
