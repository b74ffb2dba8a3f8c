"""Measure Tocsin against bare baselines in the same run."""

from __future__ import annotations

import argparse
import os
from contextlib import redirect_stderr
from pathlib import Path

from bench import backlog, delivery, flood, reading, sync
from tocsin.logs import configure_logs

PARTS = {
    "http": reading.run,
    "flood": flood.run,
    "delivery": delivery.run,
    "backlog": backlog.run,
    "sync": sync.run,
}


def main() -> None:
    """Run the parts that are asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("part", nargs="?", choices=PARTS, help="only this one")
    parser.add_argument("--rounds", type=int, default=3, help="how often each is measured")
    parser.add_argument("--large", action="store_true", help="sync 1 GiB, for its memory, only")
    wanted = parser.parse_args()
    with Path(os.devnull).open("w") as nowhere:
        # the log is written as a node writes it, and read by nobody
        with redirect_stderr(nowhere):
            configure_logs("console")
        _run(wanted)


def _run(wanted: argparse.Namespace) -> None:
    if wanted.large:
        sync.run_large()
        return
    for name, run in PARTS.items():
        if wanted.part in (None, name):
            run(wanted.rounds)


if __name__ == "__main__":
    main()
