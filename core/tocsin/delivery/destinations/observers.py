"""Plugins that hear of events: each is a destination of its own, so that none costs another.

What they hear goes through the queue: once over all nodes, again after a failure, and accounted
for like whatever else is sent.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from tocsin.hookspecs import Channel, Tools
from tocsin.model import Delivery, Health, Receipt

OBSERVER_PREFIX = "hook:"
"""What the names of such destinations begin with; no other name can hold a colon."""
_THREADS = 4


class ObserverChannel(Channel):
    """Hands events to a plugin's `tocsin_event`."""

    def __init__(self, settings: Any, tools: Tools, hook: Callable[..., Any]) -> None:
        super().__init__(settings, tools)
        self._hook = hook
        # of its own: a hook that hangs keeps its thread though nobody waits for it any more
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix=f"tocsin-{tools.name}")

    async def check(self) -> Health:
        """Return that it is there; it is asked nothing."""
        return Health(detail="hears of events")

    async def deliver(self, delivery: Delivery) -> Receipt:
        """Call the hook, in a thread, and wait for the coroutine if that is what it returns."""
        call = partial(self._hook, event=delivery.event)
        result = await asyncio.get_running_loop().run_in_executor(self._threads, call)
        if inspect.isawaitable(result):
            await result
        return Receipt()
