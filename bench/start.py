"""Start of an idle node: time of its imports and of the start, memory; and time of `--help`."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from sqlalchemy import URL

from bench.databases import KINDS, new_urls, open_new
from bench.http_reads import serve

REST = 8
"""Seconds from the start until memory is read."""
RUNS = 8
_TIMES = re.compile(r"\b(imported_in|started_in)=.*?(\d+\.\d+)")
_MEMORY = re.compile(r"^(Rss|Anonymous): +(\d+) kB$", re.MULTILINE)
_TYPER = """
import typer
app = typer.Typer({options})
@app.command()
def read(name: str) -> None: ...
@app.command()
def write(name: str) -> None: ...
app()
"""
_HELP = {
    "tocsin": ("-m", "tocsin"),
    "Typer, two commands": ("-c", _TYPER.format(options="")),
    "the same without Rich": (
        "-c",
        _TYPER.format(options="rich_markup_mode=None, pretty_exceptions_enable=False"),
    ),
}


def run(rounds: int) -> None:
    """Measure a node on each kind of database, and `--help`."""
    print("\n| Idle node | imports, s | start, s | resident, MB | anonymous, MB |")
    print("|---|---:|---:|---:|---:|")
    for kind in KINDS:
        with new_urls(kind) as new_url:
            url = new_url()
            asyncio.run(_create_schema(url))
            for _ in range(rounds):
                cells = " | ".join(_measure_node(url))
                print(f"| {kind} | {cells} |", flush=True)
    print("\n| `--help` | CPU time, s | Tocsin / other |\n|---|---:|---:|")
    times: dict[str, list[float]] = {name: [] for name in _HELP}
    for _ in range(RUNS):
        for name, arguments in _HELP.items():
            times[name].append(_measure_help(arguments))
    ours = median(times["tocsin"])
    for name, taken in times.items():
        print(f"| {name} | {median(taken):.3f} | {ours / median(taken):.2f} |")


async def _create_schema(url: URL) -> None:
    database = await open_new(lambda: url)
    await database.close()


def _measure_node(url: URL) -> list[str]:
    """Return the times that a node logs, and its memory, as text."""
    with serve(url) as node:
        time.sleep(REST)
        times = _TIMES.findall(node.log.read_text())
        memory = _MEMORY.findall(Path(f"/proc/{node.pid}/smaps_rollup").read_text())
    return [value for _, value in times] + [f"{int(value) / 1000:.1f}" for _, value in memory]


def _measure_help(arguments: Sequence[str]) -> float:
    """Return the CPU time of a process that prints its help."""
    command = [sys.executable, *arguments, "--help"]
    before = os.times()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    used = after.children_user - before.children_user
    return used + after.children_system - before.children_system
