"""Investigations, schedules and database gauges of a node."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import nan
from typing import Any, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError
from ulid import ULID

from tocsin.clock import Clock
from tocsin.enrichment import Enrichers, EnrichmentMeters, IncidentEnricher
from tocsin.events import Notifiers
from tocsin.hookspecs import Investigator, Provider
from tocsin.incidents import (
    DriftGauges,
    IntakeBacklog,
    ProviderFacts,
    ProviderSync,
    SyncContext,
    SyncMeters,
    list_backlogs,
    load_drift,
    load_read_until,
)
from tocsin.investigations import (
    Finisher,
    HistoryAnswers,
    InvestigationMetrics,
    InvestigationWorker,
    LedgerCompaction,
    ProviderEventSearch,
    QuestionRouter,
    WriteBackMetrics,
    WriteBackWorker,
    build_change_finisher,
    build_write_back_finisher,
)
from tocsin.knowledge import SearchIndexer, count_unindexed
from tocsin.limits import BucketSynchronizer
from tocsin.loops import Loop
from tocsin.metrics import Metrics
from tocsin.model import Marking
from tocsin.observables import Environment
from tocsin.registry import LivePlugins
from tocsin.schedules import RunCompletion, ScheduleGauges, ScheduleMetrics, Scheduler, load_summary
from tocsin.settings import Settings
from tocsin.stops import EmergencyStop, StopGauges, StopKind, load_stops
from tocsin.store import Database, load_redactor

T = TypeVar("T")
_TIMEOUT = 2  # seconds, so that scrapes do not wait for a slow database


def register_database_gauges(
    metrics: Metrics,
    database: Database,
    load: Callable[[Connection], T],
    show: Callable[[T], None],
    clear: Callable[[], None],
) -> None:
    """Show the result of `load` at each scrape; clear it if the database is too slow."""

    async def read() -> None:
        try:
            async with asyncio.timeout(_TIMEOUT):
                found = await database.read(load)
        except (TimeoutError, SQLAlchemyError, OSError):
            clear()
        else:
            show(found)

    metrics.read_by(read)


NO_INVESTIGATOR = (
    "the plugin `investigator` is not enabled, and no other investigator is configured"
)


@dataclass(frozen=True, slots=True)
class InvestigationRuntime:
    """Investigations of a node, and the upkeep of the history that they search."""

    indexer: SearchIndexer
    write_backs: WriteBackWorker
    enrichers: Enrichers
    enricher: IncidentEnricher
    sharing: BucketSynchronizer | None
    """None if no other node shares the rate limits of the enrichers."""
    worker: InvestigationWorker
    compaction: LedgerCompaction
    absent_providers: dict[str, str]
    """Reasons of the providers that are not running."""

    def loops(self) -> list[Coroutine[Any, Any, None]]:
        """Return the loops of the role `investigate`."""
        loops = (self.indexer, self.write_backs, self.worker, self.compaction)
        return [loop.run() for loop in loops]

    def upkeep(self) -> list[Coroutine[Any, Any, None]]:
        """Return the loops of every node on which API callers can query enrichers."""
        return [] if self.sharing is None else [self.sharing.run()]


def explain_missing_investigator(plugins: LivePlugins) -> str | None:
    """Return the reason why there is no investigator, None if there is one."""
    if plugins.investigator is not None:
        return None
    reasons = (absent.reason for absent in plugins.absent if "investigator" in absent.name)
    return next(reasons, NO_INVESTIGATOR)


def build_investigations(
    plugins: LivePlugins,
    database: Database,
    clock: Clock,
    *,
    environment: Environment,
    markings: Mapping[str, Marking],
    notifiers: Notifiers,
    metrics: Metrics,
    number: int,
    is_shared: bool,
    public_url: str,
    finishers: Sequence[Finisher],
) -> InvestigationRuntime:
    """Build the investigations of a node without starting them."""
    meters = EnrichmentMeters(metrics)
    enrichers = Enrichers(
        plugins.enrichers, environment, database, clock, meters, markings=markings
    )
    sharing = BucketSynchronizer([enrichers.buckets], database, clock, node=str(ULID()))
    _measure_lag(metrics, database)
    absent_providers = list_absent_providers(plugins)
    answers = QuestionRouter(
        HistoryAnswers(database, markings, environment),
        ProviderEventSearch(plugins.providers, absent_providers),
        enrichers,
        partial(database.read, load_read_until),
        environment,
        load_redactor=partial(database.lookup, load_redactor),
    )
    compaction = LedgerCompaction(database, clock)
    worker = InvestigationWorker(
        database,
        clock,
        notifiers,
        number,
        investigator=None,
        answer=answers,
        finishers=[
            build_write_back_finisher(plugins.providers, public_url),
            build_change_finisher(public_url),
            compaction.finish,
            *finishers,
        ],
        markings=markings,
        meter=InvestigationMetrics(metrics),
    )
    replace_investigator(worker, plugins.investigator)
    return InvestigationRuntime(
        indexer=SearchIndexer(database, clock, notifiers),
        write_backs=WriteBackWorker(database, clock, plugins.providers, WriteBackMetrics(metrics)),
        enrichers=enrichers,
        enricher=IncidentEnricher(enrichers, database, markings),
        sharing=sharing if is_shared else None,
        worker=worker,
        compaction=compaction,
        absent_providers=absent_providers,
    )


def replace_investigator(worker: InvestigationWorker, investigator: Investigator | None) -> None:
    """Use another investigator for all sessions that start from now on."""
    worker.investigator = investigator
    if investigator is not None:
        worker.at_once = investigator.settings.at_once


def list_absent_providers(plugins: LivePlugins) -> dict[str, str]:
    """Return the reasons of absent providers by their names."""
    prefix = "providers."
    return {
        absent.name.removeprefix(prefix): absent.reason
        for absent in plugins.absent
        if absent.name.startswith(prefix)
    }


def make_sync_loops(
    providers: Iterable[Provider], context: SyncContext, meters: SyncMeters
) -> dict[str, Loop]:
    """Return the loops that read these providers, by their names."""
    syncs = (
        ProviderSync(provider, context, meters.of(provider.tools.name))
        for provider in providers
        if provider.streams()
    )
    return {sync.name: sync.run for sync in syncs}


def register_drift_gauges(
    metrics: Metrics, database: Database, providers: Sequence[ProviderFacts]
) -> DriftGauges:
    """Register the gauges of vendor drift."""
    gauges = DriftGauges(metrics, {facts.name: facts.retirements for facts in providers})
    register_database_gauges(metrics, database, load_drift, gauges.show, gauges.clear)
    return gauges


def register_delay_gauges(metrics: Metrics, database: Database, clock: Clock) -> None:
    """Register the gauges of emergency stops, and of pushes that wait in the intake."""
    _measure_stops(metrics, database, clock)
    _measure_backlogs(metrics, database, clock)


def _measure_stops(metrics: Metrics, database: Database, clock: Clock) -> None:
    gauges = StopGauges(metrics)

    def load(connection: Connection) -> list[EmergencyStop]:
        now = clock.now()
        return [stop for kind in StopKind for stop in load_stops(connection, kind, now).values()]

    register_database_gauges(metrics, database, load, gauges.show, gauges.clear)


def _measure_backlogs(metrics: Metrics, database: Database, clock: Clock) -> None:
    gauge = metrics.gauge(
        "tocsin_intake_waiting_seconds",
        "How long the provider's oldest push has been waiting in the intake to be stored",
        "provider",
    )

    def show(backlogs: Sequence[IntakeBacklog]) -> None:
        gauge.clear()
        for each in backlogs:
            gauge.labels(each.provider).set((clock.now() - each.since).total_seconds())

    register_database_gauges(metrics, database, list_backlogs, show, gauge.clear)


def _measure_lag(metrics: Metrics, database: Database) -> None:
    gauge = metrics.gauge(
        "tocsin_search_lag_incidents", "Incident changes that are not yet in the search index"
    )
    register_database_gauges(metrics, database, count_unindexed, gauge.set, partial(gauge.set, nan))


def build_scheduler(
    settings: Settings, database: Database, clock: Clock, notifiers: Notifiers, metrics: Metrics
) -> Scheduler:
    """Build the scheduler without starting it."""
    meter, gauges = ScheduleMetrics(metrics), ScheduleGauges(metrics, clock)
    register_database_gauges(metrics, database, load_summary, gauges.show, gauges.clear)
    completion = RunCompletion(settings.public_url, settings.schedule_failure_limit, meter)
    return Scheduler(database, clock, notifiers, completion, meter)
