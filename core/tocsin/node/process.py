"""One process of the service and its background loops."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import structlog
from aiohttp import web
from sqlalchemy import Connection

from tocsin.clock import Clock
from tocsin.credentials import KeyRotation
from tocsin.delivery import (
    DeliveryMetrics,
    DeliveryQueue,
    ReplayRunner,
    Router,
    WorkerPool,
    enable_due_destinations,
    expire_deliveries,
    find_routing_hold,
)
from tocsin.erasure import TombstoneFile, follow_erasures
from tocsin.errors import ConfigurationError, OperatorError
from tocsin.events import Notifiers
from tocsin.incidents import (
    DocumentRebuild,
    PushInbox,
    SyncContext,
    SyncMeters,
    TicketClosures,
)
from tocsin.loops import LoopGroup, raise_if_cancelled, run_forever, run_unless_stopped
from tocsin.node.clocks import ClockWatch
from tocsin.node.components import InvestigationRuntime
from tocsin.node.configuration import find_configuration_drift
from tocsin.node.head import HeadKeeper
from tocsin.node.health import NodeHealth
from tocsin.node.reload import Reloader
from tocsin.node.service_manager import ServiceManager
from tocsin.node.stalls import StallReporter
from tocsin.registry import AbsentPlugin, Configuration, LivePlugins, strict_problem
from tocsin.retention import Retention
from tocsin.schedules import Scheduler
from tocsin.settings import NodeRole, Settings
from tocsin.stops import EmergencyStop, StopKind, end_due_stops
from tocsin.store import Database, DatabaseFault, UnusableDatabaseError
from tocsin.web import ApiRunner, ApiRuntime, ReloadResult, limit_connections

_UPKEEP = timedelta(seconds=2)
_REJOIN_DELAY = _UPKEEP / 4
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Workers:
    """Everything that works in the background of one process."""

    number: int
    notifiers: Notifiers
    metrics: DeliveryMetrics
    queue: DeliveryQueue
    router: Router
    pool: WorkerPool
    context: SyncContext
    read: SyncMeters
    syncs: LoopGroup
    inbox: PushInbox
    closures: TicketClosures
    investigations: InvestigationRuntime
    scheduler: Scheduler
    retention: Retention


@dataclass(slots=True)
class NodeState:
    """State of a node, which its API reports."""

    plugins: LivePlugins
    pool: WorkerPool
    roles: dict[str, bool]
    """Whether each role has started."""
    drift: list[str]
    """Differences between its `plugins.toml` and what was applied."""
    clocks: ClockWatch
    health: NodeHealth
    routing_hold: str | None = None
    """Why events wait instead of being routed, with the remedy; None if they are routed."""
    reloader: Reloader | None = None
    """None until the node is built."""

    async def reload(self) -> ReloadResult:
        """Reread the files of the node; if it raises OperatorError, nothing has changed."""
        assert self.reloader is not None  # noqa: S101 - requests come when the node is built
        return await self.reloader.reload()

    @property
    def name(self) -> str:
        """The name of the node, from its machine and its port."""
        return self.health.name

    @property
    def suspension(self) -> str | None:
        """Why the node does not work; None while it does."""
        return self.clocks.suspension

    @property
    def absent(self) -> list[AbsentPlugin]:
        """Plugins and destinations that are configured but not loaded."""
        return [*self.plugins.absent, *self.absent_destinations]

    async def check_database(self) -> DatabaseFault | None:
        """Return the fault that keeps the database from taking writes, None if it takes them."""
        return await self.health.check_database()

    @property
    def stalled(self) -> Sequence[str]:
        """Names of the loops that are stuck."""
        return self.health.stalled

    @property
    def silent(self) -> Sequence[str]:
        """Names of the loops that hang."""
        return self.health.silent

    def find_objects(self, plugin: str) -> Mapping[str, Any]:
        """Return the running objects of a plugin, by the paths of their tables."""
        return self.plugins.find_objects(plugin)

    @property
    def degraded(self) -> Mapping[str, str]:
        """Why plugin objects are degraded, by the paths of their tables."""
        return self.health.plugins.degraded

    @property
    def absent_destinations(self) -> list[AbsentPlugin]:
        """Destinations that are configured but not loaded."""
        absent = self.pool.absent.items()
        return [AbsentPlugin(f"destinations.{name}", why) for name, why in absent]


@dataclass(slots=True)
class ServiceNode:
    """Everything that runs in one process."""

    settings: Settings
    configuration: Configuration
    database: Database
    clock: Clock
    state: NodeState
    workers: Workers
    api: ApiRuntime
    app: web.Application
    head: HeadKeeper
    rotation: KeyRotation
    stalls: StallReporter
    reread: Callable[[], Settings]
    """Reads the settings again, with the files that hold secrets; raises ConfigurationError."""
    reload_requested: asyncio.Event = field(default_factory=asyncio.Event)
    begun_at: float = field(default_factory=time.monotonic)
    """When its start began, by the monotonic clock."""
    imported_in: float = 0.0
    """Seconds that imports took before the start."""
    _has_joined: asyncio.Event = field(default_factory=asyncio.Event)
    _failure: str | None = None

    async def run(self, stop: asyncio.Event, manager: ServiceManager | None = None) -> None:
        """Run until `stop` is set; then finish active deliveries and release the others.

        Raises UnusableDatabaseError if the database was replaced by another one.
        """
        self.state.health.heartbeats.follow()
        self.state.health.plugins.follow()
        with self.stalls.watch():
            await self._run(stop, manager or ServiceManager())

    async def _run(self, stop: asyncio.Event, manager: ServiceManager) -> None:
        runner = ApiRunner(self.app, connections=limit_connections())
        await runner.setup()
        membership = asyncio.create_task(
            run_forever(self._join_cluster, self.clock, "cluster membership")
        )
        try:
            if await run_unless_stopped(self._start(runner), stop):
                await self._run_loops(runner, stop, manager)
        finally:
            await self._finish(runner)
            membership.cancel()
            await asyncio.gather(membership, return_exceptions=True)
            await self.api.finish()
        if self._failure is not None:
            raise UnusableDatabaseError(self._failure, DatabaseFault.REPLACED)
        _log.info("stopped")

    async def _start(self, runner: ApiRunner) -> bool:
        """Join the cluster, start the delivery workers and listen; return True.

        Raises OperatorError if one of them fails.
        """
        await self._has_joined.wait()
        await self.state.clocks.compare()
        if NodeRole.DELIVER in self.settings.roles and self.state.suspension is None:
            await self._start_delivering()
        await self._listen(runner)
        return True

    async def _run_loops(
        self, runner: ApiRunner, stop: asyncio.Event, manager: ServiceManager
    ) -> None:
        """Run the loops until `stop` is set; then end them while deliveries and requests finish."""
        async with asyncio.TaskGroup() as group:
            loops = [group.create_task(loop) for loop in self._loops(stop)]
            loops.append(group.create_task(manager.run(self.state, self.clock)))
            loops += [group.create_task(loop) for loop in self._reload_loops(manager)]
            self._log_start()
            await stop.wait()
            _log.info("stopping")
            for loop in loops:
                loop.cancel()
            await self._finish(runner)

    async def _finish(self, runner: ApiRunner) -> None:
        """Finish deliveries and requests in progress, both at the same time."""
        await asyncio.gather(self.workers.pool.finish(), runner.cleanup())

    async def _join_cluster(self) -> None:
        """Stay a member of the cluster, and rejoin before other nodes consider this one gone.

        It does not complete any step: only a member has a heartbeat.
        """
        while True:
            try:
                await self.database.attend(self.workers.number, self._on_notification)
            except Exception as error:  # noqa: BLE001 - the connection is renewed after any error
                raise_if_cancelled()
                reason = str(error) or repr(error)
                _log.warning("cluster membership lost; reconnecting", reason=reason)
                await self.clock.sleep(_REJOIN_DELAY)

    def _on_notification(self, topic: str) -> None:
        self._has_joined.set()
        self.workers.notifiers.notify_topic(topic)

    async def _start_delivering(self) -> None:
        """Start the delivery workers; raises OperatorError if one is absent in strict mode."""
        await self.workers.pool.follow()
        absent_destinations = self.state.absent_destinations
        if self.configuration.strict and absent_destinations:
            raise ConfigurationError(
                [strict_problem(self.configuration.path, absent) for absent in absent_destinations]
            )

    async def _listen(self, runner: ApiRunner) -> None:
        host, port = self.settings.host, self.settings.port
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            raise OperatorError(
                f"cannot listen on {host}, port {port} ({error.strerror}); set TOCSIN_HOST to an "
                f"address of this machine and TOCSIN_PORT to a free port"
            ) from error

    def _reload_loops(self, manager: ServiceManager) -> list[Coroutine[Any, Any, None]]:
        reloader = self.state.reloader
        if reloader is None:
            return []
        return [reloader.run(self.reload_requested, manager), reloader.watch()]

    def _loops(self, stop: asyncio.Event) -> list[Coroutine[Any, Any, None]]:
        def end(reason: str) -> None:
            self._failure = reason
            stop.set()

        watches = [self.head.run(end), self.state.clocks.run(), self.state.health.run()]
        watches.append(self.rotation.run())
        return [
            self._work(),
            *watches,
            *self.api.loops(),
            *self.workers.investigations.upkeep(),
        ]

    async def _work(self) -> None:
        """Run the loops of the roles until cancelled, except while the node is suspended."""
        while True:
            await self.state.clocks.may_work.wait()
            async with asyncio.TaskGroup() as group:
                loops = [group.create_task(loop) for loop in self._working_loops()]
                self.state.roles.update(dict.fromkeys(self.state.roles, True))
                await self.state.clocks.must_rest.wait()
                self.state.roles.update(dict.fromkeys(self.state.roles, False))
                for loop in loops:
                    loop.cancel()
            await self.workers.pool.finish()

    def _working_loops(self) -> list[Coroutine[Any, Any, None]]:
        upkeep = run_forever(self._maintain, self.clock, "node maintenance")
        rebuild = DocumentRebuild(self.database, self.clock).run()
        file = TombstoneFile(self.settings.data_dir)
        return [
            upkeep,
            rebuild,
            follow_erasures(self.database, self.clock, file),
            *(loop for role in self.settings.roles for loop in self._role_loops(role)),
        ]

    def _role_loops(self, role: NodeRole) -> list[Coroutine[Any, Any, None]]:
        match role:
            case NodeRole.API:  # the loops of the API run on every node
                return []
            case NodeRole.SYNC:
                return [self.workers.syncs.run()]
            case NodeRole.INVESTIGATE:
                return self.workers.investigations.loops()
            case NodeRole.SCHEDULE:
                return self.workers.scheduler.loops()
            case NodeRole.DELIVER:
                replaying = ReplayRunner(self.database, self.clock, self.workers.notifiers).run()
                return [
                    self.workers.router.run(),
                    self.workers.pool.run(),
                    replaying,
                    self.workers.retention.run(),
                ]

    async def _maintain(self) -> None:
        await self.clock.sleep(_UPKEEP)
        now = self.clock.now()
        if taken := await self.workers.queue.take_over(now):
            self.workers.metrics.taken_over.inc(taken)
            _log.warning("deliveries taken over from lost nodes", deliveries=taken)
        await self.database.write(expire_deliveries, now)
        await self._end_due_stops(now)
        if self.state.routing_hold is not None:
            self.state.routing_hold = await self.database.lookup(find_routing_hold)
        self.state.drift = await find_configuration_drift(self.configuration, self.database)

    async def _end_due_stops(self, now: datetime) -> None:
        destinations, providers = await self.database.write(_end_due_stops, now)
        for name in destinations:
            _log.info("destination enabled automatically", destination=name)
        for stop in providers:
            _log.info("provider enabled automatically", provider=stop.name)

    def _log_start(self) -> None:
        for absent in self.state.plugins.absent:
            _log.warning("plugin not loaded", name=absent.name, reason=absent.reason)
        _log.info(
            "started",
            url=self.settings.public_url,
            providers=sorted(self.state.plugins.providers),
            destinations=self.workers.pool.running,
            imported_in=round(self.imported_in, 2),
            started_in=round(time.monotonic() - self.begun_at, 2),
        )


def _end_due_stops(connection: Connection, now: datetime) -> tuple[list[str], list[EmergencyStop]]:
    """End emergency stops that are due; return the destinations and providers that this enables."""
    destinations = enable_due_destinations(connection, now)
    return destinations, end_due_stops(connection, StopKind.PROVIDER, now)
