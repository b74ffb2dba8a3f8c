"""Delivery as a node runs it, without the rest of the node: router, fleet, queue and webhooks."""

# ruff: noqa: ASYNC110 - it waits for others, who know nothing of it
from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import RowMapping, Table, insert, select

from end_to_end.service import SECRET
from tocsin.clock import Clock
from tocsin.delivery import (
    ChannelFactory,
    DeliveryMetrics,
    DeliveryQueue,
    Renderer,
    Router,
    WorkerPool,
)
from tocsin.delivery.destinations.repository import TOPIC, Destination, destination_to_row
from tocsin.events import EVENTS, Notifiers, emit_events
from tocsin.identifiers import new_id
from tocsin.metrics import Metrics
from tocsin.model import Event, EventType
from tocsin.registry import ManagedBy, PluginFactory, load_configuration
from tocsin.store import Database
from tocsin.store.tables import attempts, deliveries, destinations, events


class Station:
    """Runs what delivers; events go in, destinations are webhooks that may reach loopback."""

    def __init__(
        self, channels: ChannelFactory, renderer: Renderer, database: Database, clock: Clock
    ):
        self.database = database
        self.clock = clock
        self._notifiers = Notifiers()
        queue, metrics = DeliveryQueue(database), DeliveryMetrics(Metrics(clock), database, clock)
        self._fleet = WorkerPool(
            channels.make,
            renderer=renderer,
            queue=queue,
            database=database,
            clock=clock,
            notifiers=self._notifiers,
            meters=metrics.meters,
        )
        self._router = Router(
            queue, database, clock, self._notifiers, metrics.routed, pool=self._fleet
        )

    async def add(self, name: str, url: str, **settings: Any) -> None:
        """Begin to deliver to a new destination."""
        reached = {"url": url, "secret": {"file": "secret"}, "allow_networks": ["127.0.0.0/8"]}
        now = self.clock.now()
        made = Destination(
            name=name,
            plugin="webhook",
            managed_by=ManagedBy.FILE,
            settings=reached | settings,
            created_by="file",
            created_at=now,
            updated_at=now,
        )
        await self.database.write(
            lambda connection: connection.execute(insert(destinations), destination_to_row(made))
        )
        self._notifiers[TOPIC].notify()
        async with asyncio.timeout(20):
            while name not in self._fleet.running:
                await asyncio.sleep(0.005)

    async def emit(
        self, count: int = 1, event_type: EventType = EventType.INCIDENT_ALERT
    ) -> list[str]:
        """Make events happen, and return their ids."""
        happened = [
            Event(
                id=new_id("evt"),
                event_type=event_type,
                timestamp=self.clock.now(),
                data={
                    "incident_number": number,
                    "title": "Odd sign-in",
                    "severity": "High",
                    "status": "New",
                    "provider": "edge",
                    "url": f"https://tocsin.example/incidents/{number}",
                },
                subject=f"incident:{number}",
            )
            for number in range(count)
        ]
        await self.database.write(emit_events, happened)
        self._notifiers[EVENTS].notify()
        return [event.id for event in happened]

    def wake(self) -> None:
        """Have everybody look for work, as they do by themselves in a second."""
        self._notifiers.notify_topic("")

    async def deliveries(self, destination: str = "soc") -> Sequence[RowMapping]:
        """Return what is on its way there, in the order of its events."""
        return await self._rows(deliveries, deliveries.c.destination == destination)

    async def attempts(self, destination: str = "soc") -> Sequence[RowMapping]:
        """Return every attempt that was made there, in order."""
        ids = select(deliveries.c.id).where(deliveries.c.destination == destination)
        return await self._rows(attempts, attempts.c.delivery_id.in_(ids))

    async def destination(self, name: str = "soc") -> RowMapping:
        """Return how it is configured, and how its receiver does."""
        [row] = await self._rows(destinations, destinations.c.name == name)
        return row

    async def _rows(self, table: Table, which: Any) -> Sequence[RowMapping]:
        query = select(table).where(which).order_by(*table.primary_key)
        return await self.database.read(lambda c: c.execute(query).mappings().all())

    async def until_attempted(self, times: int = 1, destination: str = "soc") -> None:
        """Return when so many attempts are stored; TimeoutError if that takes too long."""
        async with asyncio.timeout(20):
            while len(await self.attempts(destination)) < times:
                await asyncio.sleep(0.01)

    async def until(self, *states: str, destination: str = "soc", seconds: float = 20) -> None:
        """Return when every event is routed, and every delivery there in one of these states."""
        async with asyncio.timeout(seconds):
            while await self._rows(events, events.c.routed.is_(False)) or any(
                row["state"] not in states for row in await self.deliveries(destination)
            ):
                await asyncio.sleep(0.02)

    async def until_it_is(self, state: str, destination: str = "soc", seconds: float = 20) -> None:
        """Return when the destination is in that state."""
        async with asyncio.timeout(seconds):
            while (await self.destination(destination))["state"] != state:
                await asyncio.sleep(0.02)

    async def until_it_is_held(self, destination: str) -> None:
        """Return when it is noted that the destination has too much to do."""
        async with asyncio.timeout(20):
            while (await self.destination(destination))["held_until"] is None:
                await asyncio.sleep(0.005)

    async def finish(self) -> None:
        """End every worker, with all that is under way stored."""
        await self._fleet.finish()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Route and follow the destinations, and end what is under way at the end."""
        loops = [asyncio.create_task(self._router.run()), asyncio.create_task(self._fleet.run())]
        try:
            yield
        finally:
            for loop in loops:
                loop.cancel()
            await asyncio.gather(*loops, return_exceptions=True)
            await self.finish()


@asynccontextmanager
async def open_station(folder: Path, database: Database, clock: Clock) -> AsyncIterator[Station]:
    """Give a station that runs, without destinations."""
    (folder / "secret").write_text(SECRET)
    (folder / "plugins.toml").write_text('enabled = ["webhook"]')
    configuration = await load_configuration(folder / "plugins.toml")
    channels = ChannelFactory(configuration, PluginFactory(clock), decrypt=bytes)
    station = Station(channels, Renderer(configuration.template_paths), database, clock)
    async with station.running():
        yield station
