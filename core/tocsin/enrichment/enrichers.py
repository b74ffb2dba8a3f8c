"""All enrichers of the service, under one set of rules."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from types import MappingProxyType

from sqlalchemy import Connection

from tocsin.clock import Clock
from tocsin.enrichment.batched_enricher import BatchedEnricher, make_buckets
from tocsin.enrichment.cache import (
    CachedEnrichment,
    EnrichmentDifference,
    look_up_enrichments,
    store_enrichments,
)
from tocsin.enrichment.in_flight import EnricherReplies, QuestionClaim
from tocsin.enrichment.results import EnrichmentResult, GatheredEnrichments
from tocsin.enrichment.sharing_policy import find_refusals
from tocsin.hookspecs import Enricher
from tocsin.knowledge import find_markings
from tocsin.metrics import Metrics
from tocsin.model import EnricherSource, Entity, Marking, QueryOutcome
from tocsin.observables import Environment
from tocsin.store import Database

RESULTS = ("answered", "unknown", "cached", "outdated", "refused", "failed")


class EnrichmentMeters:
    """What this node counts of what it asks of enrichers."""

    def __init__(self, metrics: Metrics) -> None:
        self._entities = metrics.counter(
            "tocsin_enrichments_total",
            "Entities that an enricher was to be asked for, by what came of it",
            "enricher",
            "result",
        )

    def count(self, enricher: str, result: str, times: int) -> None:
        """Count so many entities with one of RESULTS."""
        self._entities.labels(enricher, result).inc(times)


OUTDATED = timedelta(days=7)
"""For so long after it has expired, an answer is used where its source cannot be asked."""


class Enrichers:
    """Asks enrichers. One that is broken, slow or away costs only its own answers."""

    def __init__(
        self,
        enrichers: Mapping[str, Enricher],
        environment: Environment,
        database: Database,
        clock: Clock,
        meters: EnrichmentMeters | None = None,
        *,
        markings: Mapping[str, Marking] = MappingProxyType({}),
    ) -> None:
        """Take how each provider's incidents are marked; those of others are red."""
        self.buckets = make_buckets(clock)
        """What online enrichers are limited by, for `tocsin.limits.BucketSynchronizer`."""
        self._askers = {
            name: BatchedEnricher(name, enrichers[name], self.buckets, clock)
            for name in sorted(enrichers)
        }
        self._environment = environment
        self._database = database
        self._clock = clock
        self._meters = meters
        self._markings = markings

    def sources(self) -> tuple[EnricherSource, ...]:
        """Return who may be asked, by name."""
        return tuple(
            EnricherSource(
                name=name,
                kinds=tuple(sorted(asker.enricher.kinds)),
                online=asker.enricher.online,
            )
            for name, asker in self._askers.items()
        )

    async def ask(
        self, name: str, entities: Sequence[Entity], marking: Marking
    ) -> EnrichmentResult:
        """Return what an enricher says of these entities, and keep it.

        Those that are of no kind of its own are passed over. An online one is asked only for what
        its limits allow, and for nothing that is internal; what it said is good for `cache_for`,
        and for a week more, with its date, where it cannot be asked anew.
        """
        if name not in self._askers:
            return EnrichmentResult(
                enrichments=(), outcome=QueryOutcome.REFUSED, reason="there is no such enricher"
            )
        async with self.gathering(name, entities, marking) as gathered:
            if gathered.answers:
                await self._database.write(self.keep, name, gathered)
        return gathered.asked(self._own(name, entities))

    @asynccontextmanager
    async def gathering(
        self, name: str, entities: Sequence[Entity], marking: Marking
    ) -> AsyncIterator[GatheredEnrichments]:
        """Yield what came of asking, for the caller to keep.

        An online enricher is asked for an entity once at a time: whoever wants the same, and may,
        waits for that answer, and until it is kept it is handed to those who come.
        """
        asker, own = self._askers[name], self._own(name, entities)
        markings = await self._marked(own, marking)
        refused = find_refusals(asker.enricher, markings, self._environment)
        open_to = [entity for entity in own if entity not in refused]
        with asker.questions.claim(open_to if asker.enricher.online else ()) as claim:
            gathered = await self._gather(asker, claim, open_to, refused)
            gathered.markings = markings
            self._count(name, gathered)
            yield gathered

    async def _gather(
        self,
        asker: BatchedEnricher,
        claim: QuestionClaim,
        entities: Sequence[Entity],
        refused: Mapping[Entity, str],
    ) -> GatheredEnrichments:
        kept: dict[Entity, CachedEnrichment] = {}
        cached: dict[Entity, CachedEnrichment] = {}
        replies, now, left = EnricherReplies(), self._clock.now(), entities
        while left:
            kept |= await self._kept(asker, left)
            now = self._clock.now()
            cached |= {it: kept[it] for it in left if it in kept and _is_good(kept[it], now)}
            claim.release(cached)
            wanted = [entity for entity in left if entity not in cached]
            replies.update(await claim.ask(asker.ask, wanted))
            left = [entity for entity in wanted if entity not in replies]
        setbacks = {
            entity: failure
            for entity, failure in replies.failures.items()
            if failure.outcome is QueryOutcome.UNAVAILABLE and _is_of_use(kept.get(entity), now)
        }
        return GatheredEnrichments(
            refused=refused,
            cached=cached,
            answers={
                entity: replies.answers[entity] for entity in entities if entity in replies.answers
            },
            outdated={entity: kept[entity] for entity in setbacks},
            failures={it: why for it, why in replies.failures.items() if it not in setbacks},
            setbacks=setbacks,
        )

    def keep(
        self, connection: Connection, name: str, gathered: GatheredEnrichments
    ) -> dict[Entity, EnrichmentDifference]:
        """Keep what was answered; return how it compares with what was said before."""
        now, enricher = self._clock.now(), self._askers[name].enricher
        expires_at = now + enricher.settings.cache_for if enricher.online else None
        answers, markings = gathered.answers, gathered.markings
        return store_enrichments(connection, name, answers, now, expires_at, markings=markings)

    def _own(self, name: str, entities: Iterable[Entity]) -> list[Entity]:
        kinds = self._askers[name].enricher.kinds
        return [entity for entity in dict.fromkeys(entities) if entity.kind in kinds]

    async def _marked(
        self, entities: Sequence[Entity], marking: Marking
    ) -> Mapping[Entity, Marking]:
        """Return each entity's marking: the strictest of what is known here and what was said."""
        known = await self._database.read(find_markings, entities, self._markings)
        return {
            entity: Marking.strictest([marking, *([known[entity]] if entity in known else [])])
            for entity in entities
        }

    async def _kept(
        self, asker: BatchedEnricher, entities: Sequence[Entity]
    ) -> dict[Entity, CachedEnrichment]:
        enricher = asker.enricher
        if not (enricher.online and enricher.settings.cache_for and entities):
            return {}
        return await self._database.read(look_up_enrichments, asker.name, entities)

    def _count(self, name: str, gathered: GatheredEnrichments) -> None:
        if self._meters is None:
            return
        answered = sum(1 for answer in gathered.answers.values() if answer)
        self._meters.count(name, "answered", answered)
        self._meters.count(name, "unknown", len(gathered.answers) - answered)
        self._meters.count(name, "cached", len(gathered.cached))
        self._meters.count(name, "outdated", len(gathered.outdated))
        self._meters.count(name, "refused", len(gathered.refused))
        self._meters.count(name, "failed", len(gathered.failures))


def _is_good(kept: CachedEnrichment, now: datetime) -> bool:
    return kept.expires_at is not None and kept.expires_at > now


def _is_of_use(kept: CachedEnrichment | None, now: datetime) -> bool:
    return kept is not None and kept.expires_at is not None and kept.expires_at + OUTDATED > now
