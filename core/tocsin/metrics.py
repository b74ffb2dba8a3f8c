"""Prometheus metrics of a node; the only module that uses the client library."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
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
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from tocsin.clock import Clock

__all__ = ["KEPT", "MEDIA_TYPE", "Counter", "Gauge", "Histogram", "MetricFamily", "Metrics"]

MEDIA_TYPE = "text/plain"
KEPT = timedelta(seconds=5)
"""How long one rendering of the metrics is reused."""

# Creation times double the number of series
disable_created_metrics()  # type: ignore[no-untyped-call]


@dataclass(frozen=True, slots=True)
class MetricFamily:
    """All values of one metric, which are computed elsewhere."""

    name: str
    kind: str
    """`gauge` or `counter`."""
    description: str
    labels: tuple[str, ...]
    samples: list[tuple[tuple[str, ...], float]] = field(default_factory=list)
    """The values by the values of their labels."""


class _Families(Collector):
    """Collects families that a function returns."""

    def __init__(self, get: Callable[[], Iterable[MetricFamily]]) -> None:
        self._get = get

    def collect(self) -> Iterator[Metric]:
        """Yield the families."""
        for family in self._get():
            kind = CounterMetricFamily if family.kind == "counter" else GaugeMetricFamily
            shown = kind(family.name, family.description, labels=family.labels)
            for labels, value in family.samples:
                shown.add_metric(labels, value)
            yield shown


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

    def add_families(self, get: Callable[[], Iterable[MetricFamily]]) -> None:
        """Show the families that `get` returns at each scrape, after the readings."""
        self._registry.register(_Families(get))

    async def expose(self) -> bytes:
        """Return all metrics in Prometheus' text format 0.0.4, at most `KEPT` old."""
        async with self._exposing:
            if not self._is_fresh():
                # Together, so that a database that hangs delays the scrape by one timeout
                await asyncio.gather(*(read() for read in self._readings))
                # In a thread, because many destinations make it long
                self._exposed = await asyncio.to_thread(generate_latest, self._registry)
                self._exposed_at = self._clock.now()
            return self._exposed

    def _is_fresh(self) -> bool:
        if self._exposed_at is None:
            return False
        age = self._clock.now() - self._exposed_at
        return timedelta(0) <= age < KEPT  # the clock may have been set back
