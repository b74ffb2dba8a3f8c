"""How enriching does, in numbers, by enricher."""

from __future__ import annotations

from tocsin.metrics import Metrics

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
