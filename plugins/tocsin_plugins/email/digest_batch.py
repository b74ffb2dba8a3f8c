"""Batches of deliveries for one digest."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta

from tocsin import Clock, Delivery, PluginFailure, Receipt

LINGER = timedelta(seconds=1)
"""How long the first delivery waits for others that arrive at the same time."""
Bring = Callable[[Sequence[Delivery]], Awaitable[list[Receipt | PluginFailure]]]


class DigestBatcher:
    """Collects concurrent deliveries, and sends them together."""

    def __init__(self, bring: Bring, clock: Clock) -> None:
        self._bring = bring
        self._clock = clock
        self._open: _DigestBatch | None = None

    async def bring(self, delivery: Delivery) -> Receipt:
        """Return the receipt of this delivery, or raise its failure."""
        if self._open is None:
            self._open = _DigestBatch(self._bring_all)
        return await self._open.join(delivery)

    async def _bring_all(self, batch: _DigestBatch) -> None:
        await self._clock.sleep(LINGER)
        self._open = None
        await batch.settle(self._bring)


class _DigestBatch:
    """Deliveries that go together, each with a waiting caller."""

    def __init__(self, run: Callable[[_DigestBatch], Awaitable[None]]) -> None:
        self._waiting: dict[asyncio.Future[Receipt], Delivery] = {}
        self._task = asyncio.ensure_future(run(self))

    async def join(self, delivery: Delivery) -> Receipt:
        """Return the receipt; cancels the batch if every waiting caller is cancelled."""
        outcome: asyncio.Future[Receipt] = asyncio.get_running_loop().create_future()
        self._waiting[outcome] = delivery
        try:
            return await outcome
        except asyncio.CancelledError:
            if all(each.done() for each in self._waiting):
                self._task.cancel()
            raise

    async def settle(self, bring: Bring) -> None:
        """Pass each caller the result of its delivery."""
        wanted = {
            waiting: delivery for waiting, delivery in self._waiting.items() if not waiting.done()
        }
        try:
            results = await bring(list(wanted.values()))
            for outcome, result in zip(wanted, results, strict=True):
                _settle_future(outcome, result)
        except Exception as error:  # noqa: BLE001 - passed on to every caller
            for outcome in wanted:
                _settle_future(outcome, error)
        finally:
            for outcome in wanted:
                outcome.cancel()


def _settle_future(outcome: asyncio.Future[Receipt], result: Receipt | Exception) -> None:
    if outcome.done():  # the caller is gone
        return
    if isinstance(result, Receipt):
        outcome.set_result(result)
    else:
        outcome.set_exception(result)
