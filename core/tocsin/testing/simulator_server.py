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
    """Serve a simulator on a local port in real time, until you press Ctrl+C.

    The simulator starts halfway through a `Scenario` with this number of changes. Half of the
    changes have already happened, and the other half follow over the next twelve hours.
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
        print(f"{kind.__name__} listens at {simulator.url}; press Ctrl+C to stop it", flush=True)  # noqa: T201
        await asyncio.Event().wait()
