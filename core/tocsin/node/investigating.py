"""What of a node investigates: who is asked, what is remembered, and the loops beside it."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from functools import partial
from math import nan
from typing import Any

from ulid import ULID

from tocsin.clock import Clock
from tocsin.enrichment import Enrichers, EnrichmentMeters, IncidentEnriching
from tocsin.events import Bells
from tocsin.incidents import read_until
from tocsin.investigations import (
    Answers,
    Finisher,
    History,
    Investigations,
    Meter,
    ProviderEvents,
    tell_incidents,
)
from tocsin.investigations.write_backs import WriteBackMeter, WriteBacks
from tocsin.knowledge import Indexer, lag
from tocsin.limits import Sharing
from tocsin.metrics import Metrics
from tocsin.node.measuring import measure
from tocsin.observables import Environment
from tocsin.registry import Configuration, LivePlugins
from tocsin.store import Database

NO_INVESTIGATOR = "the plugin `investigator` is disabled, and no other is named"


@dataclass(frozen=True, slots=True)
class Investigating:
    """What investigates on a node, and what keeps the history that it looks at."""

    indexer: Indexer
    write_backs: WriteBacks
    enriching: IncidentEnriching
    sharing: Sharing | None
    """None where no other node asks the same enrichers."""
    investigations: Investigations | None
    """None where there is no investigator."""

    def loops(self) -> list[Coroutine[Any, Any, None]]:
        """Return what has to run until it is cancelled."""
        loops: list[Coroutine[Any, Any, None]] = [self.indexer.run(), self.write_backs.run()]
        if self.investigations is not None:
            loops.append(self.investigations.run())
        return loops

    def upkeep(self) -> list[Coroutine[Any, Any, None]]:
        """Return what has to run wherever enrichers can be asked, which callers of the API do."""
        return [] if self.sharing is None else [self.sharing.run()]


def why_no_investigator(plugins: LivePlugins) -> str | None:
    """Return why nothing is investigated here; None where something is."""
    if plugins.investigator is not None:
        return None
    reasons = (absent.reason for absent in plugins.absent if "investigator" in absent.name)
    return next(reasons, NO_INVESTIGATOR)


def make_investigating(
    configuration: Configuration,
    plugins: LivePlugins,
    database: Database,
    clock: Clock,
    *,
    bells: Bells,
    metrics: Metrics,
    number: int,
    is_shared: bool,
    public_url: str,
    finishers: Sequence[Finisher],
) -> Investigating:
    """Return what investigates, with nothing running yet."""
    environment, markings = Environment(configuration.environment), configuration.markings
    meters = EnrichmentMeters(metrics)
    enrichers = Enrichers(
        plugins.enrichers, environment, database, clock, meters, markings=markings
    )
    sharing = Sharing([enrichers.buckets], database, clock, node=str(ULID()))
    _measure_lag(metrics, database)
    answers = Answers(
        History(database, markings, environment),
        ProviderEvents(plugins.providers, _absent_providers(plugins)),
        enrichers,
        partial(database.read, read_until),
    )
    investigations = plugins.investigator and Investigations(
        database,
        clock,
        bells,
        number,
        investigator=plugins.investigator,
        answer=answers,
        finishers=[tell_incidents(plugins.providers, public_url), *finishers],
        markings=markings,
        meter=Meter(metrics),
        at_once=plugins.investigator.settings.at_once,
    )
    return Investigating(
        indexer=Indexer(database, clock, bells),
        write_backs=WriteBacks(database, clock, plugins.providers, WriteBackMeter(metrics)),
        enriching=IncidentEnriching(enrichers, database, markings),
        sharing=sharing if is_shared else None,
        investigations=investigations or None,
    )


def _absent_providers(plugins: LivePlugins) -> dict[str, str]:
    """Return why each provider that was left out was, by its name."""
    prefix = "providers."
    return {
        absent.name.removeprefix(prefix): absent.reason
        for absent in plugins.absent
        if absent.name.startswith(prefix)
    }


def _measure_lag(metrics: Metrics, database: Database) -> None:
    gauge = metrics.gauge(
        "tocsin_search_lag_incidents", "Changes of incidents that cannot be searched for yet"
    )
    measure(metrics, database, lag, gauge.set, partial(gauge.set, nan))
