"""Prometheus metrics of a node; the only module that uses the client library."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)

from tocsin.clock import Clock

__all__ = ["KEPT", "MEDIA_TYPE", "Counter", "Gauge", "Histogram", "Metrics"]

MEDIA_TYPE = "text/plain"
KEPT = timedelta(seconds=5)
"""How long one rendering of the metrics is reused."""

# Creation times double the number of series
disable_created_metrics()  # type: ignore[no-untyped-call]


class Metrics:
    """Metrics of one node, separate from other nodes in the same process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._registry = CollectorRegistry()
        self._readings: list[Callable[[], Awaitable[None]]] = []
        self._exposing = asyncio.Lock()
        self._exposed = b""
        self._exposed_at: datetime | None = None
        ProcessCollector(registry=self._registry)

    def counter(self, name: str, description: str, *labels: str) -> Counter:
        """Return a new counter; its name ends in `_total`."""
        return Counter(name, description, labels, registry=self._registry)

    def gauge(self, name: str, description: str, *labels: str) -> Gauge:
        """Return a new gauge."""
        return Gauge(name, description, labels, registry=self._registry)

    def histogram(
        self, name: str, description: str, buckets: Sequence[float], *labels: str
    ) -> Histogram:
        """Return a new histogram of durations, by upper bounds in seconds."""
        return Histogram(name, description, labels, registry=self._registry, buckets=buckets)

    def read_by(self, reading: Callable[[], Awaitable[None]]) -> None:
        """Refresh gauges with `reading` whenever the metrics are requested."""
        self._readings.append(reading)

    async def expose(self) -> bytes:
        """Return all metrics in Prometheus' text format 0.0.4, at most `KEPT` old."""
        async with self._exposing:
            if not self._is_fresh():
                for read in self._readings:
                    await read()
                # In a thread, because many destinations make it long
                self._exposed = await asyncio.to_thread(generate_latest, self._registry)
                self._exposed_at = self._clock.now()
            return self._exposed

    def _is_fresh(self) -> bool:
        if self._exposed_at is None:
            return False
        age = self._clock.now() - self._exposed_at
        return timedelta(0) <= age < KEPT  # the clock may have been set back
