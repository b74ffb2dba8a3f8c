"""Composition root: builds a node from its settings."""

from __future__ import annotations

import asyncio
import platform
import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from importlib.metadata import version
from pathlib import Path

from tocsin import gc
from tocsin.audit import SEAL
from tocsin.clock import Clock, SystemClock
from tocsin.credentials import KeyRotation, open_proven_vault
from tocsin.delivery import (
    ChannelFactory,
    DeliveryMetrics,
    DeliveryQueue,
    DestinationServices,
    Renderer,
    Router,
    ShardAssignment,
    StoredAttemptLog,
    WorkerPool,
    find_routing_hold,
    requeue_pending,
)
from tocsin.erasure import ERASURE_PURPOSE
from tocsin.events import Notifiers
from tocsin.incidents import (
    PushInbox,
    SyncContext,
    SyncMeters,
    TicketClosures,
    describe_providers,
)
from tocsin.knowledge import StoredKnowledge
from tocsin.loops import LoopGroup, run_unless_stopped
from tocsin.metrics import Metrics
from tocsin.model import Marking
from tocsin.node.clocks import ClockWatch
from tocsin.node.components import (
    build_investigations,
    build_scheduler,
    explain_missing_investigator,
    make_sync_loops,
    register_delay_gauges,
    register_drift_gauges,
)
from tocsin.node.configuration import settle_configuration
from tocsin.node.database import load_shared_time, open_ready_database
from tocsin.node.digests import find_certificates
from tocsin.node.head import HeadKeeper
from tocsin.node.health import NodeHealth
from tocsin.node.machine_metrics import MachineGauges
from tocsin.node.plugin_metrics import PluginMetrics
from tocsin.node.process import NodeState, ServiceNode, Workers
from tocsin.node.read_replica import open_read_replica
from tocsin.node.reload import Reloader
from tocsin.node.service_manager import ServiceManager
from tocsin.node.stalls import StallReporter
from tocsin.observables import Environment
from tocsin.registry import (
    LivePlugins,
    PluginFactory,
    RetentionSettings,
    load_configuration,
    start_investigation_plugins,
    start_providers,
)
from tocsin.retention import GrowthGauges, build_retention
from tocsin.settings import NodeRole, Settings, load_settings
from tocsin.store import (
    Database,
    HeadFile,
    hold_lock,
    identify_location,
    is_sqlite,
    parse_url,
    parse_urls,
    sqlite_file,
)
from tocsin.tracing import open_tracing
from tocsin.web import make_app, open_api_runtime


@asynccontextmanager
async def open_node(
    settings: Settings,
    clock: Clock | None = None,
    reread: Callable[[], Settings] | None = None,
    *,
    is_dev: bool = False,
) -> AsyncIterator[ServiceNode]:
    """Build a node without starting it, and close its resources afterwards.

    The configuration is validated before anything is opened. A reload calls `reread` to read the
    settings again; without it, the settings do not change. See `serve` for `is_dev`. Raises
    OperatorError.
    """
    clock = clock or SystemClock()
    configuration = await load_configuration(
        settings.plugins_file, templates_dir=settings.templates_dir
    )
    urls = parse_urls(settings)
    url = urls.main
    async with AsyncExitStack() as stack:
        name = f"{platform.node()}:{settings.port}"
        if settings.tracing:
            await stack.enter_async_context(open_tracing(version("tocsin"), name))
        stack.enter_context(hold_lock(sqlite_file(url)) if is_sqlite(url) else nullcontext())
        database = await open_ready_database(urls, stack, is_copied=settings.upgrade_copy)
        head = HeadKeeper(HeadFile(settings.data_dir, identify_location(url)), database, clock)
        await head.start()
        vault = await open_proven_vault(settings, database)
        environment = Environment(configuration.environment)
        markings = dict(configuration.markings)
        retention = configuration.retention.with_defaults(
            settings.retention_days, settings.archive_dir
        )
        maker = PluginFactory(
            clock,
            settings.public_url,
            environment,
            StoredKnowledge(database, environment, markings),
            StoredAttemptLog(database),
        )
        plugins = await start_providers(configuration, maker)
        stack.push_async_callback(plugins.close)
        await start_investigation_plugins(configuration, maker, plugins)
        channels = ChannelFactory(configuration, maker, vault.decrypt, settings.allow_networks)
        renderer = Renderer(configuration.template_paths, configuration.templates_dir)
        now = await load_shared_time(database, clock)
        drift = await settle_configuration(configuration, database, now, alone=is_sqlite(url))
        metrics = Metrics(clock)
        workers = _build_workers(
            settings,
            plugins,
            database,
            clock,
            environment=environment,
            markings=markings,
            retention=retention,
            metrics=metrics,
            channels=channels,
            renderer=renderer,
            audit_key=vault.derive(SEAL),
            is_dev=is_dev,
        )
        providers = describe_providers(configuration, plugins.absent)
        gauges = register_drift_gauges(metrics, database, providers)
        register_delay_gauges(metrics, database, clock)
        roles = dict.fromkeys((role.value for role in settings.roles), False)
        clocks = ClockWatch(database, clock, workers.number, metrics, name=name)
        rotation = KeyRotation(
            database,
            vault,
            clock,
            number=workers.number,
            metrics=metrics,
            retained=(SEAL, ERASURE_PURPOSE),
        )
        health = NodeHealth(
            database,
            clock,
            workers.number,
            name,
            roles=list(roles),
            describe_keys=rotation.describe,
            metrics=metrics,
        )
        replica = open_read_replica(
            settings, database, clock=clock, number=workers.number, metrics=metrics, stack=stack
        )
        hold = await database.read(find_routing_hold)
        state = NodeState(plugins, workers.pool, roles, drift, clocks, health, hold)
        api = await stack.enter_async_context(
            open_api_runtime(
                settings,
                database,
                vault,
                clock,
                destinations=DestinationServices.build(
                    channels, renderer, database, clock, vault.encrypt
                ),
                inbox=workers.inbox,
                enricher=workers.investigations.enricher,
                inventory=configuration.inventory,
                environment=environment,
                markings=markings,
                metrics=metrics,
                no_investigator=explain_missing_investigator(plugins),
                replica=replica,
                node=state,
                is_shared=not is_sqlite(url),
                archive=retention.archive,
                providers=providers,
            )
        )
        app = make_app(api.services, has_api=NodeRole.API in settings.roles)
        if is_dev:
            await database.write(requeue_pending, now)
        taken = await workers.queue.take_over(now, certain=is_sqlite(url))
        workers.metrics.taken_over.inc(taken)
        node = ServiceNode(
            settings,
            configuration,
            database,
            clock,
            state,
            workers,
            api,
            app,
            head,
            rotation,
            StallReporter(health.plugins, metrics, lambda: api.services.inventory),
            reread or (lambda: settings),
        )
        state.reloader = Reloader(
            node,
            factory=maker,
            channels=channels,
            environment=environment,
            markings=markings,
            vault=vault,
            gauges=gauges,
            metrics=metrics,
            is_alone=is_sqlite(url),
        )
        stack.push_async_callback(state.reloader.close)
        PluginMetrics(metrics, lambda: api.services.inventory, state.find_objects)
        MachineGauges(
            metrics,
            _list_folders(settings, retention),
            lambda: find_certificates(node.configuration),
        )
        await state.reloader.start()
        yield node


def _list_folders(settings: Settings, retention: RetentionSettings) -> dict[str, Path]:
    """Return the folders that the node writes to."""
    url, folders = parse_url(settings.database), {"data": settings.data_dir}
    if is_sqlite(url):
        folders["database"] = sqlite_file(url).parent
    if retention.archive is not None:
        folders["archive"] = retention.archive
    return folders


def _build_workers(
    settings: Settings,
    plugins: LivePlugins,
    database: Database,
    clock: Clock,
    *,
    environment: Environment,
    markings: Mapping[str, Marking],
    retention: RetentionSettings,
    metrics: Metrics,
    channels: ChannelFactory,
    renderer: Renderer,
    audit_key: bytes,
    is_dev: bool,
) -> Workers:
    notifiers, number = Notifiers(), secrets.randbits(63)
    delivery_metrics = DeliveryMetrics(metrics, database, clock)
    queue = DeliveryQueue(database, number)
    closures = TicketClosures(database, clock, plugins.providers, settings.public_url, metrics)
    pool = WorkerPool(
        channels.make,
        renderer=renderer,
        queue=queue,
        database=database,
        clock=clock,
        notifiers=notifiers,
        meters=delivery_metrics.meters,
        apply=closures.apply,
    )
    context = SyncContext(
        database,
        clock,
        notifiers,
        settings.public_url,
        number,
        grows_pauses=not is_dev,
    )
    scheduler = build_scheduler(settings, database, clock, notifiers, metrics)
    read = SyncMeters(metrics)
    providers = plugins.providers.values()
    inbox = PushInbox(providers, context, read.of, plugins.intake)
    return Workers(
        number=number,
        notifiers=notifiers,
        metrics=delivery_metrics,
        queue=queue,
        router=Router(
            queue,
            database,
            clock,
            notifiers,
            delivery_metrics.routed,
            pool=pool,
            assignment=ShardAssignment(database, number, NodeRole.DELIVER),
        ),
        pool=pool,
        context=context,
        read=read,
        syncs=LoopGroup(
            {
                **make_sync_loops(providers, context, read),
                **inbox.make_readers(providers),
                **closures.make_loops(providers),
            }
        ),
        inbox=inbox,
        closures=closures,
        investigations=build_investigations(
            plugins,
            database,
            clock,
            environment=environment,
            markings=markings,
            notifiers=notifiers,
            metrics=metrics,
            number=number,
            is_shared=not is_sqlite(parse_url(settings.database)),
            public_url=settings.public_url,
            finishers=[scheduler.settling],
        ),
        scheduler=scheduler,
        retention=build_retention(database, clock, retention, audit_key, GrowthGauges(metrics)),
    )


async def serve(
    settings: Settings,
    stop: asyncio.Event,
    reload_requested: asyncio.Event | None = None,
    *,
    imported_in: float = 0.0,
    is_dev: bool = False,
) -> None:
    """Build a node and run it until `stop` is set, at any time; raises OperatorError.

    The node rereads its files whenever `reload_requested` is set. When it has started, it logs
    `imported_in`, the number of seconds that the imports took. With `is_dev`, all pending
    deliveries are due when the node starts, and the delay between failed reads does not grow.
    """
    begin = time.monotonic()
    async with AsyncExitStack() as stack:
        manager = ServiceManager.from_environment()
        following = asyncio.create_task(manager.follow(stop))
        stack.callback(following.cancel)
        opening = stack.enter_async_context(
            open_node(settings, reread=load_settings, is_dev=is_dev)
        )
        if (node := await run_unless_stopped(opening, stop)) is not None:
            gc.tune()
            gc.return_large_blocks()
            node.reload_requested = reload_requested or node.reload_requested
            node.begun_at, node.imported_in = begin, imported_in
            await node.run(stop, manager)
