"""Background work rests while the event loop is busy, and only then."""

from __future__ import annotations

import asyncio
from time import thread_time

from tocsin.background import BackgroundWork


def compute(seconds: float) -> float:
    began = thread_time()
    while (worked := thread_time() - began) < seconds:
        pass
    return worked


class Resting(BackgroundWork):
    """Keeps how long it should have rested."""

    def __init__(self) -> None:
        super().__init__()
        self.rested = 0.0

    async def rest(self, seconds: float) -> None:
        self.rested += seconds * self._rest


async def be_busy() -> None:
    while True:
        compute(0.001)
        await asyncio.sleep(0)


async def test_it_rests_while_the_loop_is_busy():
    work, busy = Resting(), asyncio.create_task(be_busy())
    worked = [await work.run(compute, 0.002) for _ in range(10)]  # shorter than a switch
    busy.cancel()
    assert work.rested > 2 * sum(worked)


async def test_it_does_not_rest_while_nobody_else_works():
    work = Resting()
    worked = [await work.run(compute, 0.01) for _ in range(5)]
    assert work.rested < sum(worked) / 2
