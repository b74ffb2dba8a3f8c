"""Asking enrichers: what may be asked, how fast, and what was said before."""

from tocsin.enrichment.cache import EnrichmentDifference
from tocsin.enrichment.enrichers import Enrichers
from tocsin.enrichment.gathered import EnrichmentResult
from tocsin.enrichment.incidents import (
    EnrichmentChanges,
    EntityEnrichmentChange,
    IncidentEnricher,
    UnansweredEntity,
)
from tocsin.enrichment.measuring import EnrichmentMeters

__all__ = [
    "Enrichers",
    "EnrichmentChanges",
    "EnrichmentDifference",
    "EnrichmentMeters",
    "EnrichmentResult",
    "EntityEnrichmentChange",
    "IncidentEnricher",
    "UnansweredEntity",
]
