"""Pool of delivery workers on one node."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime, timedelta
from time import monotonic

import structlog

from tocsin.clock import Clock
from tocsin.delivery.destinations.repository import TOPIC, Destination, load_destinations
from tocsin.delivery.metrics.meters import DeliveryMeters
from tocsin.delivery.queue.overview import load_overview
from tocsin.delivery.queue.queue import DeliveryQueue
from tocsin.delivery.queue.states import queue_topic
from tocsin.delivery.rendering import Renderer
from tocsin.delivery.sending.worker import Worker
from tocsin.delivery.statuses.reader import StatusReader, make_status_reader
from tocsin.delivery.statuses.resolutions import ApplyResolution
from tocsin.events import Notifier, Notifiers
from tocsin.hookspecs import Channel
from tocsin.loops import run_forever
from tocsin.registry import LivePlugin
from tocsin.store import Database

_POLL = timedelta(seconds=1)
_AGAIN = timedelta(minutes=1)
PATIENCE = timedelta(seconds=20)
"""Time limit for deliveries in progress when a worker ends: a node stops within 30 seconds."""
_log = structlog.get_logger()


Make = Callable[[Destination], Awaitable[LivePlugin[Channel]]]
"""Creates a destination's channel; raises if it cannot."""


class _Running:
    """A running worker, and how to end it."""

    def __init__(
        self,
        revision: int,
        live: LivePlugin[Channel],
        worker: Worker,
        reader: StatusReader | None,
    ) -> None:
        self.revision = revision
        self._close = live.close
        self.worker = worker
        loops = [worker.run(), *([] if reader is None else [reader.run()])]
        self._loops = [asyncio.create_task(loop) for loop in loops]

    async def end(self) -> None:
        """Stop claiming, finish deliveries in progress, release the rest, close connections."""
        for loop in self._loops:
            loop.cancel()
        await asyncio.gather(*self._loops, return_exceptions=True)
        try:
            await self.worker.finish(PATIENCE)
        except Exception:  # noqa: BLE001 - its deliveries are due again when their leases expire
            _log.exception("results of stopping worker not stored", destination=self.worker.name)
        await self._close()


class WorkerPool:
    """Starts, replaces and ends workers to match the destinations in the database."""

    def __init__(
        self,
        make: Make,
        *,
        renderer: Renderer,
        queue: DeliveryQueue,
        database: Database,
        clock: Clock,
        notifiers: Notifiers,
        meters: DeliveryMeters,
        apply: ApplyResolution | None = None,
    ) -> None:
        """Create a pool; `apply` is called for what people decide at receivers."""
        self._make = make
        self.renderer = renderer
        """Renders the events of attempts that begin from now on."""
        self.vacancies = Notifier()
        """Notifies its listeners when a worker has room for more deliveries."""
        self._queue = queue
        self._database = database
        self._clock = clock
        self._notifiers = notifiers
        self._meters = meters
        self._apply = apply
        self._running: dict[str, _Running] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._failed: dict[str, tuple[int, datetime]] = {}
        self._absent: dict[str, str] = {}
        self._following = asyncio.Lock()

    @property
    def absent(self) -> Mapping[str, str]:
        """Destinations that this node cannot serve, each with the reason."""
        return self._absent

    @property
    def running(self) -> list[str]:
        """Names of the destinations that this node serves."""
        return sorted(self._running)

    @property
    def revisions(self) -> Mapping[str, int]:
        """Revisions of the destinations that this node serves or cannot serve."""
        failed = {name: revision for name, (revision, _) in self._failed.items()}
        return failed | {name: each.revision for name, each in self._running.items()}

    def find_free(self) -> dict[str, Worker]:
        """Return the workers to which routing may lease deliveries, by destination."""
        workers = {name: running.worker for name, running in self._running.items()}
        return {name: worker for name, worker in workers.items() if worker.vacancy is not None}

    @property
    def is_prompt(self) -> bool:
        """Whether routing can lease deliveries to a worker whose receiver responds fast."""
        return any(running.worker.is_prompt for running in self._running.values())

    async def wait_for_free(self, patience: timedelta) -> dict[str, Worker]:
        """Return the free workers; if there are none, wait for one, but no longer than `patience`.

        Leasing a delivery costs less than claiming it. With a slow receiver, routing does not wait
        for long, and workers claim the deliveries.
        """
        free = self.find_free()
        end = monotonic() + patience.total_seconds()
        while not free and monotonic() < end:
            await self.vacancies.wait(patience)
            free = self.find_free()
        return free

    def replace(self, make: Make, renderer: Renderer) -> None:
        """Use other channels for workers that start, and other templates for all of them."""
        self._make = make
        self.renderer = renderer
        for running in self._running.values():
            running.worker.render_with(renderer)

    async def restart(self, names: Iterable[str]) -> None:
        """Restart the workers of these destinations, and start all missing workers."""
        self._failed.clear()
        async with self._following:
            for name in self._running.keys() & set(names):
                self._end(name)
        await self.follow()

    async def run(self) -> None:
        """Follow the destinations until cancelled; `finish` ends the workers."""
        await run_forever(self._step, self._clock, "destination watcher")

    async def _step(self) -> None:
        await self.look()
        await self._notifiers[TOPIC].wait(_POLL)

    async def look(self) -> None:
        """Wake the workers that have work; follow the destinations if one of them has changed.

        A single query covers all destinations, so idle destinations do not cost anything.
        """
        overview = await self._database.read(load_overview, self._clock.now())
        served = {row.name for row in overview}
        is_gone = not served.issuperset(self._running) or not served.issuperset(self._absent)
        if is_gone or any(self._is_new(row.name, row.revision) for row in overview):
            await self.follow()
        for row in overview:
            if row.has_work and row.name in self._running:
                self._running[row.name].worker.wake()

    def _is_new(self, name: str, revision: int) -> bool:
        running = self._running.get(name)
        if running is not None and running.revision == revision:
            return False
        return not self._is_hopeless(name, revision)

    async def follow(self) -> None:
        """Make the workers match the current destinations."""
        async with self._following:
            wanted = await self._database.read(load_destinations)
            served = {each.name: each for each in wanted if each.is_served}
            for name in set(self._running) - set(served):
                self._end(name)
            self._absent = {name: why for name, why in self._absent.items() if name in served}
            await asyncio.gather(*(self._serve(destination) for destination in served.values()))

    async def _serve(self, destination: Destination) -> None:
        running = self._running.get(destination.name)
        if running is not None and running.revision == destination.revision:
            return
        if running is not None:
            self._end(destination.name)
        if self._is_hopeless(destination.name, destination.revision):
            return
        try:
            live = await self._make(destination)
        except Exception as error:  # noqa: BLE001 - a failing plugin costs only itself
            self._leave_out(destination, error)
            return
        self._absent.pop(destination.name, None)
        self._start(destination, live)

    def _start(self, destination: Destination, live: LivePlugin[Channel]) -> None:
        worker = Worker(
            destination,
            live.plugin,
            renderer=self.renderer,
            queue=self._queue,
            database=self._database,
            notifier=self._notifiers[queue_topic(destination.name)],
            vacancy_notifier=self.vacancies,
            meter=self._meters.of(destination.name),
        )
        reader = make_status_reader(live.plugin, self._database, self._queue.holder, self._apply)
        self._running[destination.name] = _Running(destination.revision, live, worker, reader)

    def _is_hopeless(self, name: str, revision: int) -> bool:
        """Return whether this revision failed to start recently."""
        if (failed := self._failed.get(name)) is None:
            return False
        failed_revision, again_at = failed
        return failed_revision == revision and self._clock.now() < again_at

    def _leave_out(self, destination: Destination, error: Exception) -> None:
        reason = str(error) or repr(error)
        self._failed[destination.name] = destination.revision, self._clock.now() + _AGAIN
        if self._absent.get(destination.name) != reason:
            _log.warning("destination skipped", destination=destination.name, reason=reason)
        self._absent[destination.name] = reason

    def _end(self, name: str) -> None:
        task = asyncio.create_task(self._running.pop(name).end())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def finish(self) -> None:
        """End all workers, and wait until they have ended."""
        for name in list(self._running):
            self._end(name)
        await asyncio.gather(*self._ending)
