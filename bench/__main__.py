"""Measure Tocsin against bare baselines in the same run."""

from __future__ import annotations

import argparse
import os
from contextlib import redirect_stderr
from pathlib import Path

from bench import (
    backlog,
    console,
    delivery,
    extraction,
    flood,
    graph,
    investigating,
    paged,
    reading,
    scheduling,
    searching,
    sync,
)
from tocsin import gc
from tocsin.logs import configure_logs

PARTS = {
    "http": reading.run,
    "console": console.run,
    "flood": flood.run,
    "delivery": delivery.run,
    "backlog": backlog.run,
    "sync": sync.run,
    "paged": paged.run,
    "extraction": extraction.run,
    "investigating": investigating.run,
    "graph": graph.run,
    "scheduling": scheduling.run,
}
ON_REQUEST = {
    "sync-large": sync.run_large,
    "graph-large": graph.run_large,
    "searching": searching.run,
}
"""What is run only where it is named: it takes minutes and 12 GB of disk."""


def main() -> None:
    """Run the parts that are asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("part", nargs="?", choices=PARTS | ON_REQUEST, help="only this one")
    parser.add_argument("--rounds", type=int, default=3, help="how often each is measured")
    wanted = parser.parse_args()
    with Path(os.devnull).open("w") as nowhere:
        # the log is written as a node writes it, and read by nobody
        with redirect_stderr(nowhere):
            configure_logs("console")
        _run(wanted)


def _run(wanted: argparse.Namespace) -> None:
    chosen = PARTS if wanted.part is None else {wanted.part: (PARTS | ON_REQUEST)[wanted.part]}
    gc.tune()  # as a node does
    for run in chosen.values():
        run(wanted.rounds)


if __name__ == "__main__":
    main()
