"""The composition root: builds everything, and runs it until it is told to stop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import structlog
from aiohttp import web
from sqlalchemy import URL

from tocsin.clock import Clock, SystemClock
from tocsin.credentials import open_proven_vault
from tocsin.delivery import Renderer, Route, Router, Worker, void_leases
from tocsin.errors import OperatorError
from tocsin.events import Bell
from tocsin.incidents import ProviderSync
from tocsin.registry import Configuration, LivePlugins, load_configuration, start_plugins
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

PATIENCE = timedelta(seconds=30)
_log = structlog.get_logger()


@dataclass(slots=True)
class Node:
    """Everything that runs in one process."""

    settings: Settings
    plugins: LivePlugins
    router: Router
    workers: list[Worker]
    syncs: list[ProviderSync]
    app: web.Application
    door: Door
    started: dict[str, bool] = field(
        default_factory=lambda: dict.fromkeys(("api", "sync", "deliver"), False)
    )

    async def run(self, stop: asyncio.Event) -> None:
        """Run until `stop` is set; then finish what is under way and give back what is not."""
        runner = Runner(self.app)
        await runner.setup()
        try:
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
            await asyncio.gather(*(self._finish(worker) for worker in self.workers))
            await runner.cleanup()
            await self.door.finish()
        _log.info("stopped")

    async def _finish(self, worker: Worker) -> None:
        try:
            await worker.finish(PATIENCE)
        except Exception:  # noqa: BLE001 - what it holds is due again when its lease has run out
            _log.exception("what was under way could not be stored", destination=worker.name)

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
        workers = [worker.run() for worker in self.workers]
        syncs = [sync.run() for sync in self.syncs]
        return [self.router.run(), *workers, *syncs, *self.door.loops()]

    def _announce(self) -> None:
        for absent in self.plugins.absent:
            _log.warning("left out", name=absent.name, reason=absent.reason)
        _log.info(
            "started",
            url=self.settings.public_url,
            providers=sorted(self.plugins.providers),
            destinations=sorted(self.plugins.channels),
        )


@asynccontextmanager
async def open_node(settings: Settings, clock: Clock | None = None) -> AsyncIterator[Node]:
    """Return a node with nothing running yet, and close what it holds afterwards.

    The configuration is judged before anything is opened. Raises OperatorError.
    """
    clock = clock or SystemClock()
    configuration = await load_configuration(settings.plugins_file)
    url = parse_url(settings.database)
    async with AsyncExitStack() as stack:
        stack.enter_context(hold_lock(sqlite_file(url)) if is_sqlite(url) else nullcontext())
        database = await open_ready_database(url, stack)
        vault = await open_proven_vault(settings, database)
        if is_sqlite(url):
            await database.write(void_leases, clock.now())
        plugins = await start_plugins(configuration, clock)
        stack.push_async_callback(plugins.close)
        door = await stack.enter_async_context(
            open_door(
                settings,
                database,
                vault,
                clock,
                is_shared=not is_sqlite(url),
                roles=lambda: node.started,
            )
        )
        node = _compose(settings, configuration, plugins, door)
        yield node


async def open_ready_database(url: URL, stack: AsyncExitStack) -> Database:
    """Return the open database: SQLite's schema brought up to date, PostgreSQL's checked."""
    database = open_database(url)
    stack.push_async_callback(database.close)
    await (upgrade(database) if is_sqlite(url) else check_schema(database))
    return database


def _compose(
    settings: Settings, configuration: Configuration, plugins: LivePlugins, door: Door
) -> Node:
    database, clock = door.services.database, door.services.clock
    bell = Bell()
    renderer = Renderer(configuration.template_paths)
    workers = [Worker(channel, renderer, database) for channel in plugins.channels.values()]
    routes = [Route.of(wanted.name, wanted.settings) for wanted in configuration.destinations]
    syncs = [
        ProviderSync(provider, database, clock, bell, settings.public_url)
        for provider in plugins.providers.values()
    ]
    return Node(
        settings=settings,
        plugins=plugins,
        router=Router(routes, workers, database, clock, bell),
        workers=workers,
        syncs=syncs,
        app=make_app(door.services),
        door=door,
    )


async def serve(settings: Settings, stop: asyncio.Event) -> None:
    """Build a node and run it until `stop` is set; raises OperatorError."""
    async with open_node(settings) as node:
        await node.run(stop)
