"""Command line of the benchmarks; their results are not tested."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.full
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
        "start",
        "sync-large",
        "verdicts",
    ):
        assert part in result.stdout


def test_accuracy_of_entities_is_counted_by_labels(tmp_path):
    record = {
        "rule": {"id": "7", "level": 9, "description": "Beacon to bad[.]example"},
        "agent": {"id": "1", "name": "app-1"},
        "data": {"srcip": "203.0.113.7", "system_name": "not found.example"},
        "file": {"hash": {"sha512": "9f86d081884c7d659a2feaa0c55ad015"}},
        "url": {"original": "https://evil.example/x"},
    }
    (tmp_path / "alerts.jsonl").write_text(f"{json.dumps(record)}\n" * 2)
    command = [sys.executable, "-m", "bench.siem_entities", "--list", str(tmp_path)]
    shown = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True).stdout
    assert re.search(r"^all +2 +10 +2 +20.00 % +0$", shown, re.MULTILINE), shown
    assert re.search(r"^false +2 domain +bad.example$", shown, re.MULTILINE), shown
