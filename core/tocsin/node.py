"""The composition root: builds everything, and runs it until it is told to stop."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import structlog
from aiohttp import web
from sqlalchemy import URL

from tocsin import collector
from tocsin.clock import Clock, SystemClock
from tocsin.credentials import open_proven_vault
from tocsin.delivery import (
    Archive,
    Channels,
    DeliveryMetrics,
    Fleet,
    Registrar,
    Renderer,
    Replayer,
    Retention,
    Router,
    Samples,
    SqlQueue,
    apply,
    bury,
    load_destinations,
    plan,
    unpark_all,
    written_in,
)
from tocsin.errors import ConfigurationError, OperatorError
from tocsin.events import Bells
from tocsin.incidents import Inbox, ProviderSync, Surroundings, SyncMeters, facts_of
from tocsin.loops import run_forever
from tocsin.registry import (
    Absent,
    Configuration,
    LivePlugins,
    Maker,
    load_configuration,
    not_strict,
    start_providers,
)
from tocsin.settings import Settings
from tocsin.store import (
    Database,
    check_schema,
    hold_lock,
    is_sqlite,
    open_database,
    parse_url,
    sqlite_file,
    upgrade,
)
from tocsin.web import Door, Runner, make_app, open_door

_UPKEEP = timedelta(seconds=2)
_ABSENCE = _UPKEEP / 4
_log = structlog.get_logger()


@dataclass(slots=True)
class Node:
    """Everything that runs in one process."""

    settings: Settings
    configuration: Configuration
    plugins: LivePlugins
    database: Database
    clock: Clock
    number: int
    bells: Bells
    metrics: DeliveryMetrics
    queue: SqlQueue
    router: Router
    fleet: Fleet
    syncs: list[ProviderSync]
    inbox: Inbox
    app: web.Application
    door: Door
    started: dict[str, bool] = field(
        default_factory=lambda: dict.fromkeys(("api", "sync", "deliver"), False)
    )
    differing: list[str] = field(default_factory=list)
    _attends: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self, stop: asyncio.Event) -> None:
        """Run until `stop` is set; then finish what is under way and give back what is not."""
        runner = Runner(self.app)
        await runner.setup()
        attendance = asyncio.create_task(
            run_forever(self._attend, self.clock, "being known to other nodes")
        )
        try:
            await self._attends.wait()
            await self._start_delivering()
            await self._listen(runner)
            async with asyncio.TaskGroup() as group:
                loops = [group.create_task(loop) for loop in self._loops()]
                self.started.update(dict.fromkeys(self.started, True))
                self._announce()
                await stop.wait()
                _log.info("stopping")
                for loop in loops:
                    loop.cancel()
        finally:
            await self.fleet.finish()
            attendance.cancel()
            await asyncio.gather(attendance, return_exceptions=True)
            await runner.cleanup()
            await self.door.finish()
        _log.info("stopped")

    async def _attend(self) -> None:
        """Be known to others, and soon again: missed twice in their upkeep, it counts as gone."""
        try:
            await self.database.attend(self.number, self._hear)
        except Exception as error:  # noqa: BLE001 - however the connection ended, it is made anew
            _log.warning("not known to other nodes for a moment", reason=str(error) or repr(error))
            await self.clock.sleep(_ABSENCE)

    def _hear(self, topic: str) -> None:
        self._attends.set()
        self.bells.hear(topic)

    async def _start_delivering(self) -> None:
        """Start the workers; OperatorError where one is left out and nothing may be."""
        await self.fleet.follow()
        if self.configuration.strict and self.fleet.absent:
            left_out = (
                Absent(f"destinations.{name}", why) for name, why in self.fleet.absent.items()
            )
            raise ConfigurationError([not_strict(self.configuration.path, it) for it in left_out])

    async def _listen(self, runner: Runner) -> None:
        host, port = self.settings.host, self.settings.port
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            raise OperatorError(
                f"cannot listen on {host}, port {port} ({error.strerror}); "
                "set TOCSIN_HOST and TOCSIN_PORT to an address of this machine and a free port"
            ) from error

    def _loops(self) -> list[Coroutine[Any, Any, None]]:
        syncs = [sync.run() for sync in self.syncs]
        upkeep = run_forever(self._keep_up, self.clock, "taking over from nodes that are gone")
        replaying = Replayer(self.database, self.clock, self.bells).run()
        delivering = [self.router.run(), self.fleet.run(), replaying, *self._retention()]
        return [*delivering, upkeep, *syncs, *self.door.loops()]

    def _retention(self) -> list[Coroutine[Any, Any, None]]:
        """Return the loop that removes what is old, none where all is kept."""
        days, folder = self.settings.retention_days, self.settings.archive_dir
        if days is None:
            return []
        archive = None if folder is None else Archive(folder)
        return [Retention(self.database, self.clock, timedelta(days=days), archive).run()]

    async def _keep_up(self) -> None:
        await self.clock.sleep(_UPKEEP)
        now = self.clock.now()
        if taken := await self.queue.take_over(now):
            self.metrics.taken_over.inc(taken)
            _log.warning("took over what nodes held that are gone", deliveries=taken)
        await self.database.write(bury, now)
        self.differing = await _differing(self.configuration, self.database)

    def _announce(self) -> None:
        for absent in self.plugins.absent:
            _log.warning("left out", name=absent.name, reason=absent.reason)
        _log.info(
            "started",
            url=self.settings.public_url,
            providers=sorted(self.plugins.providers),
            destinations=self.fleet.running,
        )


@asynccontextmanager
async def open_node(settings: Settings, clock: Clock | None = None) -> AsyncIterator[Node]:
    """Return a node with nothing running yet, and close what it holds afterwards.

    The configuration is judged before anything is opened. Raises OperatorError.
    """
    clock = clock or SystemClock()
    configuration = await load_configuration(
        settings.plugins_file, templates_dir=settings.templates_dir
    )
    url = parse_url(settings.database)
    async with AsyncExitStack() as stack:
        stack.enter_context(hold_lock(sqlite_file(url)) if is_sqlite(url) else nullcontext())
        database = await open_ready_database(url, stack)
        vault = await open_proven_vault(settings, database)
        maker = Maker(clock, settings.public_url)
        plugins = await start_providers(configuration, maker)
        stack.push_async_callback(plugins.close)
        channels = Channels(configuration, maker, vault.decrypt, settings.allow_networks)
        renderer = Renderer(configuration.template_paths, configuration.templates_dir)
        differing = await _settle_destinations(configuration, database, clock, alone=is_sqlite(url))
        door = await stack.enter_async_context(
            open_door(
                settings,
                database,
                vault,
                clock,
                registrar=Registrar(channels, vault.encrypt, configuration.receivers),
                samples=Samples(channels, renderer, clock, settings.public_url),
                inbox=lambda: node.inbox,
                is_shared=not is_sqlite(url),
                roles=lambda: node.started,
                providers=facts_of(configuration, plugins.absent),
                differing=lambda: node.differing,
            )
        )
        node = _compose(
            settings, configuration, plugins, door, channels=channels, renderer=renderer
        )
        node.differing = differing
        taken = await node.queue.take_over(clock.now(), certain=is_sqlite(url))
        node.metrics.taken_over.inc(taken)
        yield node


async def _settle_destinations(
    configuration: Configuration, database: Database, clock: Clock, *, alone: bool
) -> list[str]:
    """Apply the file where this node is alone, and return what differs from it where it is not.

    What is parked is tried again: templates and plugins may have been mended.
    """
    written, now = written_in(configuration), clock.now()
    await database.write(unpark_all, now)
    if alone:
        await database.write(apply, written, "file", now)
        return []
    if differing := await _differing(configuration, database):
        words = "this node's plugins.toml is not what was applied; `tocsin apply` applies it"
        _log.warning(words, differing=differing)
    return differing


async def _differing(configuration: Configuration, database: Database) -> list[str]:
    """Return what applying the file would do."""
    known = await database.read(load_destinations)
    return [f"{step.name}: {step.action}" for step in plan(known, written_in(configuration))]


async def open_ready_database(url: URL, stack: AsyncExitStack) -> Database:
    """Return the open database: SQLite's schema brought up to date, PostgreSQL's checked."""
    database = open_database(url)
    stack.push_async_callback(database.close)
    await (upgrade(database) if is_sqlite(url) else check_schema(database))
    return database


def _compose(
    settings: Settings,
    configuration: Configuration,
    plugins: LivePlugins,
    door: Door,
    *,
    channels: Channels,
    renderer: Renderer,
) -> Node:
    database, clock = door.services.database, door.services.clock
    bells, number = Bells(), secrets.randbits(63)
    metrics = DeliveryMetrics(door.services.metrics, database, clock)
    queue = SqlQueue(database, number)
    fleet = Fleet(
        channels.make,
        renderer=renderer,
        queue=queue,
        database=database,
        clock=clock,
        bells=bells,
        meters=metrics.meters,
    )
    around = Surroundings(database, clock, bells, settings.public_url, number)
    read = SyncMeters(door.services.metrics)
    syncs = [
        ProviderSync(provider, around, read.of(name))
        for name, provider in plugins.providers.items()
        if provider.streams()
    ]
    return Node(
        settings=settings,
        configuration=configuration,
        plugins=plugins,
        database=database,
        clock=clock,
        number=number,
        bells=bells,
        metrics=metrics,
        queue=queue,
        router=Router(queue, database, clock, bells, metrics.routed),
        fleet=fleet,
        syncs=syncs,
        inbox=Inbox(plugins.providers.values(), around, read.of),
        app=make_app(door.services),
        door=door,
    )


async def serve(settings: Settings, stop: asyncio.Event) -> None:
    """Build a node and run it until `stop` is set; raises OperatorError."""
    async with open_node(settings) as node:
        collector.spare()
        await node.run(stop)
