"""All enrichers of the service, and the rules that they share."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
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
"""Results of requests to enrichers, as metric labels."""


class EnrichmentMeters:
    """Counters of this node's requests to enrichers."""

    def __init__(self, metrics: Metrics) -> None:
        self._entities = metrics.counter(
            "tocsin_enrichments_total",
            "Entities that Tocsin looked up with the enricher, by result",
            "enricher",
            "result",
        )

    def count(self, enricher: str, result: str, times: int) -> None:
        """Count entities with one of RESULTS."""
        self._entities.labels(enricher, result).inc(times)


class Enrichers:
    """Asks enrichers. A broken, slow or unavailable enricher does not affect the others."""

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
        """Take the markings of incidents by provider; unlisted providers count as red."""
        self.buckets = make_buckets(clock)
        """Rate limits of online enrichers, for `tocsin.limits.BucketSynchronizer`."""
        self._askers: dict[str, BatchedEnricher] = {}
        self._environment = environment
        self._database = database
        self._clock = clock
        self._meters = meters
        self._markings = markings
        self.replace(enrichers)

    def replace(self, enrichers: Mapping[str, Enricher]) -> None:
        """Use other enrichers from now on; requests in progress are completed."""
        before = self._askers
        self._askers = {
            name: before[name]
            if name in before and before[name].enricher is enrichers[name]
            else BatchedEnricher(name, enrichers[name], self.buckets, self._clock)
            for name in sorted(enrichers)
        }

    def sources(self) -> tuple[EnricherSource, ...]:
        """Return the available enrichers, sorted by name."""
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
        """Return an enricher's result for these entities, and cache it.

        Entities of other kinds are skipped. An online enricher is only asked within its limits, and
        never for internal entities. Its enrichments are valid for `cache_for`, and for another
        week, with their date, while it is unavailable.
        """
        if name not in self._askers:
            return EnrichmentResult(
                enrichments=(), outcome=QueryOutcome.REFUSED, reason="unknown enricher"
            )
        own = self._select_own(self._askers[name], entities)
        async with self.gathering(name, entities, marking) as gathered:
            if gathered.answers:
                await self._database.write(self.keep, name, gathered)
        return gathered.asked(own)

    @asynccontextmanager
    async def gathering(
        self, name: str, entities: Sequence[Entity], marking: Marking
    ) -> AsyncIterator[GatheredEnrichments]:
        """Yield the enrichments gathered from one enricher, for the caller to store.

        An online enricher receives one request per entity at a time: concurrent callers wait for
        that result, and callers that arrive before it is stored receive it.
        """
        asker = self._askers[name]
        own, enricher = self._select_own(asker, entities), asker.enricher
        markings = await self._marked(own, marking)
        refused = find_refusals(enricher, markings, self._environment)
        open_to = [entity for entity in own if entity not in refused]
        with asker.questions.claim(open_to if enricher.online else ()) as claim:
            gathered = await self._gather(asker, claim, open_to, refused)
            gathered.markings = markings
            gathered.valid_for = enricher.settings.cache_for if enricher.online else None
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
            cached |= {
                entity: kept[entity]
                for entity in left
                if entity in kept and kept[entity].is_fresh(now)
            }
            claim.release(cached)
            wanted = [entity for entity in left if entity not in cached]
            replies.update(await claim.ask(asker.ask, wanted))
            left = [entity for entity in wanted if entity not in replies]
        setbacks = {
            entity: failure
            for entity, failure in replies.failures.items()
            if failure.outcome is QueryOutcome.UNAVAILABLE
            and entity in kept
            and kept[entity].is_usable_if_unavailable(now)
        }
        return GatheredEnrichments(
            refused=refused,
            cached=cached,
            answers={
                entity: replies.answers[entity] for entity in entities if entity in replies.answers
            },
            outdated={entity: kept[entity] for entity in setbacks},
            failures={
                entity: failure
                for entity, failure in replies.failures.items()
                if entity not in setbacks
            },
            setbacks=setbacks,
        )

    def keep(
        self, connection: Connection, name: str, gathered: GatheredEnrichments
    ) -> dict[Entity, EnrichmentDifference]:
        """Store the gathered enrichments; return how they differ from earlier ones."""
        now, valid_for = self._clock.now(), gathered.valid_for
        expires_at = None if valid_for is None else now + valid_for
        answers, markings = gathered.answers, gathered.markings
        return store_enrichments(connection, name, answers, now, expires_at, markings=markings)

    @staticmethod
    def _select_own(asker: BatchedEnricher, entities: Iterable[Entity]) -> list[Entity]:
        kinds = asker.enricher.kinds
        return [entity for entity in dict.fromkeys(entities) if entity.kind in kinds]

    async def _marked(
        self, entities: Sequence[Entity], marking: Marking
    ) -> Mapping[Entity, Marking]:
        """Return each entity's marking: the strictest of the known and the given one."""
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
