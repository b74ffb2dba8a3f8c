"""The loop that turns events into deliveries."""

from __future__ import annotations

from datetime import timedelta

from tocsin.clock import Clock
from tocsin.delivery.queue.seam import DeliveryQueue, queue_topic
from tocsin.delivery.routing.routes import Routes, route_events
from tocsin.events import EVENTS, Notifiers
from tocsin.loops import run_forever
from tocsin.metrics import Counter
from tocsin.store import Database

_POLL = timedelta(seconds=1)
_BATCH = 200


class Router:
    """Turns events into deliveries, and wakes the workers."""

    def __init__(
        self,
        queue: DeliveryQueue,
        database: Database,
        clock: Clock,
        bells: Notifiers,
        routed: Counter,
    ) -> None:
        self._queue = queue
        self._database = database
        self._clock = clock
        self._bells = bells
        self._routed = routed
        self._routes = Routes()

    async def run(self) -> None:
        """Route until cancelled."""
        await run_forever(self._step, self._clock, "routing")

    async def _step(self) -> None:
        if not await self.route_waiting():
            await self._bells[EVENTS].wait(_POLL)

    async def route_waiting(self) -> int:
        """Route what is waiting now, and return how many events that were."""
        routed, destinations = await self._database.write(
            route_events, self._queue, self._routes, _BATCH, self._clock.now()
        )
        self._routed.inc(routed)
        for name in destinations:
            self._bells[queue_topic(name)].notify()
        return routed
