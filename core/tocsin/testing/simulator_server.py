"""Command-line server for trying a simulator by hand."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta

from tocsin.clock import SystemClock
from tocsin.testing.scenario import Scenario
from tocsin.testing.siem import Siem
from tocsin.testing.simulator import Simulator

_HISTORY = timedelta(hours=12)


def run_simulator(kind: type[Simulator], *, port: int = 8099, changes: int = 500) -> None:
    """Serve a simulator on a port of this machine, by the real time, until Ctrl+C.

    It is in the middle of a `Day` with so many changes: half of them were made already, and the
    others are made as the hours pass.
    """
    with suppress(KeyboardInterrupt):
        asyncio.run(_serve_simulator(kind, port, changes))


async def _serve_simulator(kind: type[Simulator], port: int, changes: int) -> None:
    clock = SystemClock()
    simulator = kind(Siem(clock), port=port)
    day = Scenario(clock.now() - _HISTORY, changes=changes)

    def catch_up() -> None:
        for case in day.due(clock.now()):
            simulator.siem.put(case)

    simulator.before_each = catch_up
    async with simulator:
        print(f"{kind.__name__} answers at {simulator.url}; Ctrl+C ends it", flush=True)  # noqa: T201
        await asyncio.Event().wait()
