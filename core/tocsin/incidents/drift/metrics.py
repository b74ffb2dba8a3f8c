"""Gauges of vendor drift and of vendors' APIs that end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, time

from tocsin.hookspecs import ApiRetirement
from tocsin.metrics import Metrics


class DriftGauges:
    """Gauges by provider."""

    def __init__(
        self, metrics: Metrics, retirements: Mapping[str, Iterable[ApiRetirement]]
    ) -> None:
        self._fields = metrics.gauge(
            "tocsin_provider_drifted_fields",
            "Fields that Tocsin needs but that have been missing or had a wrong type for at least "
            "a day",
            "provider",
        )
        self._ends = metrics.gauge(
            "tocsin_provider_api_end_timestamp_seconds",
            "Announced retirement date of a vendor API that a provider uses",
            "provider",
            "api",
        )
        self.show_retirements(retirements)

    def show_retirements(self, retirements: Mapping[str, Iterable[ApiRetirement]]) -> None:
        """Set the announced ends of the APIs that the providers use."""
        self._ends.clear()
        for provider, several in retirements.items():
            for retirement in several:
                end = datetime.combine(retirement.ends_on, time(), UTC)
                self._ends.labels(provider, retirement.api).set(end.timestamp())

    def show(self, drift: Mapping[str, Sequence[object]]) -> None:
        """Set the number of fields of each provider."""
        for provider, several in drift.items():
            self._fields.labels(provider).set(len(several))

    def clear(self) -> None:
        """Clear the gauges while the values are unknown."""
        self._fields.clear()
