"""Asking enrichers: what may be asked, how fast, and what was said before."""

from tocsin.enrichment.cache import Difference
from tocsin.enrichment.enrichers import Enrichers
from tocsin.enrichment.gathered import Asked
from tocsin.enrichment.incidents import Change, Changes, IncidentEnriching, Unanswered
from tocsin.enrichment.measuring import EnrichmentMeters

__all__ = [
    "Asked",
    "Change",
    "Changes",
    "Difference",
    "Enrichers",
    "EnrichmentMeters",
    "IncidentEnriching",
    "Unanswered",
]
