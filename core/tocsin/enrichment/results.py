"""Enrichment results of one enricher for several entities."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta

from tocsin.clock import isoformat
from tocsin.enrichment.cache import CachedEnrichment
from tocsin.enrichment.in_flight import EnrichmentFailure
from tocsin.model import Enrichment, Entity, Marking, QueryOutcome

_SHOWN = 3  # different reasons


@dataclass(frozen=True, slots=True, kw_only=True)
class EnrichmentResult:
    """Result of asking one enricher about entities."""

    enrichments: tuple[Enrichment, ...]
    """In the order of the entities, without those that the enricher does not know."""
    outcome: QueryOutcome
    reason: str | None = None
    """Reason for a missing or partial result; None for a complete one."""


@dataclass(slots=True, kw_only=True)
class GatheredEnrichments:
    """Enrichments gathered from one enricher; each entity is in one of these mappings."""

    refused: Mapping[Entity, str] = field(default_factory=dict)
    cached: Mapping[Entity, CachedEnrichment] = field(default_factory=dict)
    answers: Mapping[Entity, Enrichment | None] = field(default_factory=dict)
    outdated: Mapping[Entity, CachedEnrichment] = field(default_factory=dict)
    """Expired enrichments of entities about which the enricher could not be asked now."""
    failures: Mapping[Entity, EnrichmentFailure] = field(default_factory=dict)
    """Reasons for entities without any enrichment, not even an outdated one."""
    setbacks: Mapping[Entity, EnrichmentFailure] = field(default_factory=dict)
    """Reasons for entities with only an outdated enrichment."""
    markings: Mapping[Entity, Marking] = field(default_factory=dict)
    """Marking of each entity, from the caller and from all that is known here."""
    valid_for: timedelta | None = None
    """How long the answers may be used again; None for an enricher that is always asked."""

    def enrichment(self, entity: Entity) -> Enrichment | None:
        """Return the enrichment of an entity; an outdated one states its date."""
        if kept := self.outdated.get(entity):
            return kept.enrichment and _add_date(kept.enrichment, kept)
        if kept := self.cached.get(entity):
            return kept.enrichment
        return self.answers.get(entity)

    def asked(self, entities: Iterable[Entity]) -> EnrichmentResult:
        """Return the result for a caller who asked for these entities."""
        known = (found for entity in entities if (found := self.enrichment(entity)))
        return EnrichmentResult(
            enrichments=tuple(known), outcome=self._outcome(), reason=self._reason()
        )

    def _outcome(self) -> QueryOutcome:
        """Return ANSWERED if the enricher answered anything, or if there was nothing to ask."""
        if self.answers or self.cached or self.outdated:
            return QueryOutcome.ANSWERED
        outcomes = {failure.outcome for failure in self.failures.values()}
        if QueryOutcome.UNAVAILABLE in outcomes:
            return QueryOutcome.UNAVAILABLE
        return QueryOutcome.REFUSED if outcomes or self.refused else QueryOutcome.ANSWERED

    def _reason(self) -> str | None:
        reasons = Counter(self._reasons())
        texts = [reason if n == 1 else f"{reason} ({n} entities)" for reason, n in reasons.items()]
        more = [f"and {len(texts) - _SHOWN} other reasons"] if len(texts) > _SHOWN else []
        return "; ".join(texts[:_SHOWN] + more) or None

    def _reasons(self) -> Iterator[str]:
        yield from self.refused.values()
        yield from (failure.reason for failure in self.failures.values())
        for failure in self.setbacks.values():
            yield f"{failure.reason}; using an earlier result"


def _add_date(enrichment: Enrichment, kept: CachedEnrichment) -> Enrichment:
    summary = f"{enrichment.summary} (as of {isoformat(kept.fetched_at)})"
    return replace(enrichment, summary=summary, tags=(*enrichment.tags, "outdated"))
