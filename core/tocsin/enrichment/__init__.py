"""Asking enrichers: what may be asked, how fast, and what was said before."""

from tocsin.enrichment.cache import EnrichmentDifference
from tocsin.enrichment.enrichers import Enrichers, EnrichmentMeters
from tocsin.enrichment.incidents import (
    EnrichmentChanges,
    EntityEnrichmentChange,
    IncidentEnricher,
    UnansweredEntity,
)
from tocsin.enrichment.results import EnrichmentResult

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
