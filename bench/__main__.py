"""Benchmark Tocsin against minimal baselines in the same run."""

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
    graph,
    growth,
    http_reads,
    idle_destinations,
    intake,
    investigation,
    key_flood,
    large_histories,
    paginated_api,
    peers,
    scale,
    schedules,
    search,
    start,
    sync,
    verdicts,
)
from bench.sizes import QUICK
from tocsin import gc
from tocsin.logs import configure_logs

PARTS = {
    "http": http_reads.run,
    "console": console.run,
    "key-flood": key_flood.run,
    "delivery": delivery.run,
    "backlog": backlog.run,
    "idle-destinations": idle_destinations.run,
    "sync": sync.run,
    "paginated-api": paginated_api.run,
    "extraction": extraction.run,
    "investigation": investigation.run,
    "graph": graph.run,
    "growth": growth.run,
    "schedules": schedules.run,
    "start": start.run,
    "verdicts": verdicts.run,
}
BY_NAME = {
    "sync-large": sync.run_large,
    "graph-large": graph.run_large,
    "search": search.run,
    "peers": peers.run,
    "scale": scale.run,
    "intake": intake.run,
}
"""Parts that only run by name: they take minutes, or install others."""
WITH_FOLDER = {
    "prepare-histories": large_histories.prepare,
    "large-histories": large_histories.run,
}
"""Parts that only run by name, and can keep their 12 GB of databases in a folder."""


def main() -> None:
    """Run the requested parts."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "part", nargs="?", choices=PARTS | BY_NAME | WITH_FOLDER, help="the only part to run"
    )
    parser.add_argument(
        QUICK,
        action="store_true",
        help="measure large histories at a tenth of their size, and nodes with less load",
    )
    parser.add_argument("--rounds", type=int, default=3, help="number of measurements for each")
    parser.add_argument(
        "--folder", type=Path, help="folder in which large histories are kept between runs"
    )
    wanted = parser.parse_args()
    with Path(os.devnull).open("w") as nowhere:
        # logs are rendered like a node's, and discarded
        with redirect_stderr(nowhere):
            configure_logs("console")
        _run(wanted)


def _run(wanted: argparse.Namespace) -> None:
    gc.tune()  # like a node
    if wanted.part in WITH_FOLDER:
        WITH_FOLDER[wanted.part](wanted.rounds, wanted.folder)
        return
    chosen = PARTS if wanted.part is None else {wanted.part: (PARTS | BY_NAME)[wanted.part]}
    for run in chosen.values():
        run(wanted.rounds)


if __name__ == "__main__":
    main()
