"""Metrics of plugins, which are read at each scrape."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import structlog

from tocsin.hookspecs import Metric
from tocsin.loops import PLUGIN_FAILURES, was_cancelled
from tocsin.metrics import MetricFamily, Metrics
from tocsin.plugin_results import require_items, require_result
from tocsin.registry import PluginInventory

_SECONDS = 2
_log = structlog.get_logger()

MetricsHook = Callable[..., Sequence[Metric]]


class PluginMetrics:
    """Calls the hook `tocsin_metrics` of each plugin; one that fails costs only its own metrics."""

    def __init__(
        self,
        metrics: Metrics,
        get_inventory: Callable[[], PluginInventory],
        find_objects: Callable[[str], Mapping[str, Any]],
    ) -> None:
        self._get_inventory = get_inventory
        self._find_objects = find_objects
        self._families: list[MetricFamily] = []
        self._failing: set[str] = set()
        self._running: dict[str, asyncio.Future[Sequence[Metric]]] = {}
        metrics.read_by(self._read)
        metrics.add_families(lambda: self._families)

    async def _read(self) -> None:
        self._families = [
            family
            for plugin, hook in self._get_inventory().metrics.items()
            for family in await self._read_plugin(plugin, hook)
        ]

    async def _read_plugin(self, plugin: str, hook: MetricsHook) -> list[MetricFamily]:
        try:
            found = _group(plugin, hook, await self._call(plugin, hook))
        except PLUGIN_FAILURES as error:
            if was_cancelled():
                raise
            if plugin not in self._failing:
                self._failing.add(plugin)
                _log.warning("metrics of a plugin not read", plugin=plugin, exc_info=error)
            return []
        self._failing.discard(plugin)
        return found

    async def _call(self, plugin: str, hook: MetricsHook) -> Sequence[Metric]:
        """Return the metrics; a call that hangs keeps its thread, and is not repeated."""
        running = self._running.get(plugin)
        if running is None or running.done():
            call = asyncio.to_thread(hook, objects=self._find_objects(plugin))
            running = self._running[plugin] = asyncio.ensure_future(call)
        async with asyncio.timeout(_SECONDS):
            return await asyncio.shield(running)


def _group(plugin: str, hook: MetricsHook, found: object) -> list[MetricFamily]:
    """Return the metrics by name; TypeError or ValueError if they do not fit together."""
    families: dict[str, MetricFamily] = {}
    for one in require_items(found, hook):
        metric = require_result(one, Metric, hook)
        name = f"tocsin_plugin_{plugin.replace('-', '_')}_{metric.name}"
        first = MetricFamily(name, metric.kind, metric.description, tuple(metric.labels))
        family = families.setdefault(name, first)
        if (family.kind, set(family.labels)) != (metric.kind, set(metric.labels)):
            raise ValueError(f"{metric.name}: use one kind and the same labels for all values")
        values = tuple(str(metric.labels[label]) for label in family.labels)
        family.samples.append((values, float(metric.value)))
    return list(families.values())
