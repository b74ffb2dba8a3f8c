"""Enrichment: sharing policy, rate limits, cache, and enrichers."""

from tocsin.enrichment.cache import EnrichmentDifference
from tocsin.enrichment.enrichers import Enrichers, EnrichmentMeters
from tocsin.enrichment.incidents import (
    EnrichmentChanges,
    EntityEnrichmentChange,
    IncidentEnricher,
    UnansweredEntity,
)
from tocsin.enrichment.results import EnrichmentResult
from tocsin.enrichment.sanitizer import sanitize_enrichments

__all__ = [
    "Enrichers",
    "EnrichmentChanges",
    "EnrichmentDifference",
    "EnrichmentMeters",
    "EnrichmentResult",
    "EntityEnrichmentChange",
    "IncidentEnricher",
    "UnansweredEntity",
    "sanitize_enrichments",
]
