"""Enrichment of incidents."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

from sqlalchemy import Connection, func, select

from tocsin.enrichment.cache import CachedEnrichment, EnrichmentDifference, load_enrichments
from tocsin.enrichment.enrichers import Enrichers
from tocsin.enrichment.results import GatheredEnrichments
from tocsin.model import Enrichment, Entity, EntityKind, Marking, QueryOutcome, find_marking
from tocsin.store import Database
from tocsin.store.tables import incident_entities, incidents

MOST_ENTITIES = 200
"""Maximum number of an incident's entities to enrich, the first by kind and value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityEnrichmentChange:
    """Enrichment of one entity by one enricher, compared with the previous one."""

    entity: Entity
    enricher: str
    difference: EnrichmentDifference
    enrichment: Enrichment | None
    """None if nothing is known anymore."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnansweredEntity:
    """An entity without a reply from an enricher, and the reason."""

    entity: Entity
    enricher: str
    outcome: QueryOutcome
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EnrichmentChanges:
    """Result of enriching an incident; each part is sorted by entity, then by enricher."""

    number: int
    changes: tuple[EntityEnrichmentChange, ...]
    skipped: tuple[UnansweredEntity, ...]
    """Lookups that a rule forbids."""
    failed: tuple[UnansweredEntity, ...]
    """Lookups that failed, or that are not possible now."""
    passed_over: int
    """Number of entities beyond the maximum, which are not enriched."""


Part = TypeVar("Part", EntityEnrichmentChange, UnansweredEntity)


class IncidentEnricher:
    """Enriches incidents; `markings` holds the marking of incidents by provider."""

    def __init__(
        self, enrichers: Enrichers, database: Database, markings: Mapping[str, Marking]
    ) -> None:
        self._enrichers = enrichers
        self._database = database
        self._markings = markings

    async def enrich(self, number: int) -> EnrichmentChanges | None:
        """Ask every enricher about an incident's entities, and store and return the results."""
        found = await self._database.read(read_subject, number)
        if found is None:
            return None
        provider, entities, total = found
        marking = find_marking(provider, self._markings)
        names = [source.name for source in self._enrichers.sources()]
        async with AsyncExitStack() as until_kept:
            # Nothing is kept before all have answered: some read what others bring into the graph
            async with asyncio.TaskGroup() as asking:
                tasks = {
                    name: asking.create_task(
                        until_kept.enter_async_context(
                            self._enrichers.gathering(name, entities, marking)
                        )
                    )
                    for name in names
                }
            of_each = {name: task.result() for name, task in tasks.items()}
            differences = {
                name: await self._database.write(self._enrichers.keep, name, of_each[name])
                for name in names
            }
        return EnrichmentChanges(
            number=number,
            changes=_in_order(_changes(name, of_each[name], differences[name]) for name in names),
            skipped=_in_order(_skipped(name, of_each[name]) for name in names),
            failed=_in_order(_failed(name, of_each[name]) for name in names),
            passed_over=total - len(entities),
        )

    def load_stored(
        self, connection: Connection, entities: Collection[Entity]
    ) -> dict[Entity, dict[str, CachedEnrichment]]:
        """Return each enricher's latest result for these entities, without asking any enricher.

        Entities of which nothing is known are left out.
        """
        found: dict[Entity, dict[str, CachedEnrichment]] = {}
        names = [source.name for source in self._enrichers.sources()]
        for name, cached in load_enrichments(connection, names, entities).items():
            for entity, kept in cached.items():
                if kept.enrichment is not None:
                    found.setdefault(entity, {})[name] = kept
        return found


def read_subject(connection: Connection, number: int) -> tuple[str, Sequence[Entity], int] | None:
    """Return an incident's provider, entities to enrich and their total; None if unknown."""
    provider = connection.scalar(select(incidents.c.provider).where(incidents.c.number == number))
    if provider is None:
        return None
    e = incident_entities.c
    of_it = e.incident_number == number
    rows = connection.execute(
        select(e.kind, e.value).where(of_it).order_by(e.kind, e.value).limit(MOST_ENTITIES)
    )
    entities = [Entity(EntityKind(row.kind), row.value) for row in rows]
    total = connection.scalar(select(func.count()).select_from(incident_entities).where(of_it))
    return provider, entities, total or 0


def _changes(
    name: str, gathered: GatheredEnrichments, differences: Mapping[Entity, EnrichmentDifference]
) -> Iterator[EntityEnrichmentChange]:
    kept = dict.fromkeys((*gathered.cached, *gathered.outdated), EnrichmentDifference.SAME)
    for entity, difference in {**kept, **differences}.items():
        enrichment = gathered.enrichment(entity)
        if enrichment or difference is EnrichmentDifference.GONE:
            yield EntityEnrichmentChange(
                entity=entity, enricher=name, difference=difference, enrichment=enrichment
            )


def _skipped(name: str, gathered: GatheredEnrichments) -> Iterator[UnansweredEntity]:
    for entity, reason in gathered.refused.items():
        yield UnansweredEntity(
            entity=entity, enricher=name, outcome=QueryOutcome.REFUSED, reason=reason
        )


def _failed(name: str, gathered: GatheredEnrichments) -> Iterator[UnansweredEntity]:
    for entity, why in (*gathered.failures.items(), *gathered.setbacks.items()):
        yield UnansweredEntity(entity=entity, enricher=name, outcome=why.outcome, reason=why.reason)


def _in_order(parts: Iterable[Iterable[Part]]) -> tuple[Part, ...]:
    def place(part: Part) -> tuple[str, str, str]:
        return part.entity.kind, part.entity.value, part.enricher

    return tuple(sorted(chain.from_iterable(parts), key=place))
