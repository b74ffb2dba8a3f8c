"""One process of the service and its background loops."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import structlog
from aiohttp import web

from tocsin.clock import Clock
from tocsin.delivery import (
    Archive,
    DeliveryMetrics,
    DeliveryQueue,
    ReplayRunner,
    Retention,
    Router,
    WorkerPool,
    expire_deliveries,
)
from tocsin.errors import ConfigurationError, OperatorError
from tocsin.events import Notifiers
from tocsin.incidents import ProviderSync, PushInbox
from tocsin.loops import run_forever
from tocsin.node.components import InvestigationRuntime
from tocsin.node.configuration import plan_file
from tocsin.registry import AbsentPlugin, Configuration, LivePlugins, strict_problem
from tocsin.schedules import Scheduler
from tocsin.settings import NodeRole, Settings
from tocsin.store import Database
from tocsin.web import ApiRunner, ApiRuntime

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
    notifiers: Notifiers
    metrics: DeliveryMetrics
    queue: DeliveryQueue
    router: Router
    fleet: WorkerPool
    syncs: list[ProviderSync]
    inbox: PushInbox
    investigating: InvestigationRuntime
    scheduling: Scheduler
    app: web.Application
    door: ApiRuntime
    started: dict[str, bool] = field(default_factory=dict)
    """Its roles, and whether each was started."""
    differing: list[str] = field(default_factory=list)
    _attends: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def left_out(self) -> list[AbsentPlugin]:
        """What its `plugins.toml` configures and it does without."""
        return [*self.plugins.absent, *self._destinations_left_out()]

    def _destinations_left_out(self) -> list[AbsentPlugin]:
        absent = self.fleet.absent.items()
        return [AbsentPlugin(f"destinations.{name}", why) for name, why in absent]

    async def run(self, stop: asyncio.Event) -> None:
        """Run until `stop` is set; then finish what is under way and give back what is not."""
        runner = ApiRunner(self.app)
        await runner.setup()
        attendance = asyncio.create_task(
            run_forever(self._attend, self.clock, "being known to other nodes")
        )
        try:
            await self._attends.wait()
            if NodeRole.DELIVER in self.settings.roles:
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
        self.notifiers.notify_topic(topic)

    async def _start_delivering(self) -> None:
        """Start the workers; OperatorError where one is left out and nothing may be."""
        await self.fleet.follow()
        left_out = self._destinations_left_out()
        if self.configuration.strict and left_out:
            raise ConfigurationError(
                [strict_problem(self.configuration.path, it) for it in left_out]
            )

    async def _listen(self, runner: ApiRunner) -> None:
        host, port = self.settings.host, self.settings.port
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            raise OperatorError(
                f"cannot listen on {host}, port {port} ({error.strerror}); "
                "set TOCSIN_HOST and TOCSIN_PORT to an address of this machine and a free port"
            ) from error

    def _loops(self) -> list[Coroutine[Any, Any, None]]:
        upkeep = run_forever(self._keep_up, self.clock, "taking over from nodes that are gone")
        of_roles = (loop for role in self.settings.roles for loop in self._loops_of(role))
        return [upkeep, *self.door.loops(), *self.investigating.upkeep(), *of_roles]

    def _loops_of(self, role: NodeRole) -> list[Coroutine[Any, Any, None]]:
        match role:
            case NodeRole.API:  # what its endpoints need runs on every node
                return []
            case NodeRole.SYNC:
                return [sync.run() for sync in self.syncs]
            case NodeRole.INVESTIGATE:
                return self.investigating.loops()
            case NodeRole.SCHEDULE:
                return self.scheduling.loops()
            case NodeRole.DELIVER:
                replaying = ReplayRunner(self.database, self.clock, self.notifiers).run()
                return [self.router.run(), self.fleet.run(), replaying, *self._retention()]

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
        await self.database.write(expire_deliveries, now)
        self.differing = await find_configuration_drift(self.configuration, self.database)

    def _announce(self) -> None:
        for absent in self.plugins.absent:
            _log.warning("left out", name=absent.name, reason=absent.reason)
        _log.info(
            "started",
            url=self.settings.public_url,
            providers=sorted(self.plugins.providers),
            destinations=self.fleet.running,
        )


async def find_configuration_drift(configuration: Configuration, database: Database) -> list[str]:
    """Return what applying the file would do."""
    steps = await database.read(plan_file, configuration)
    return [f"{step.section}.{step.name}: {step.action}" for step in steps]
