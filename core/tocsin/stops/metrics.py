"""Gauge of emergency stops."""

from __future__ import annotations

from collections.abc import Iterable

from tocsin.metrics import Metrics
from tocsin.stops.records import EmergencyStop


class StopGauges:
    """Gauge of the stops that are in force."""

    def __init__(self, metrics: Metrics) -> None:
        self._stops = metrics.gauge(
            "tocsin_emergency_stop",
            "1 for each destination or provider that a person has disabled (emergency stop)",
            "kind",
            "name",
        )

    def show(self, stops: Iterable[EmergencyStop]) -> None:
        """Set the stops that are in force."""
        self._stops.clear()
        for stop in stops:
            self._stops.labels(stop.kind, stop.name).set(1)

    def clear(self) -> None:
        """Clear the gauge while the stops are unknown."""
        self._stops.clear()
