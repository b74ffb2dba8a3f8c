"""Offline enrichers, enabled unless `plugins.toml` disables them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tocsin import ConsolePage, Enricher, Metric, Route, hookimpl
from tocsin_plugins.enrichers.attack import Attack
from tocsin_plugins.enrichers.cve import Cve
from tocsin_plugins.enrichers.domains import Domains
from tocsin_plugins.enrichers.history import HistoryEnricher
from tocsin_plugins.enrichers.list_status import PAGES, ROUTES, commands, measure_lists
from tocsin_plugins.enrichers.lists import Lists
from tocsin_plugins.enrichers.neighborhood import NeighborhoodEnricher
from tocsin_plugins.enrichers.networks import Networks

__all__ = [
    "Attack",
    "Cve",
    "Domains",
    "HistoryEnricher",
    "Lists",
    "NeighborhoodEnricher",
    "Networks",
    "tocsin_commands",
    "tocsin_console_pages",
    "tocsin_enrichers",
    "tocsin_metrics",
    "tocsin_routes",
]


@hookimpl
def tocsin_enrichers() -> Sequence[type[Enricher]]:
    """Return the enrichers."""
    return (Attack, Cve, Domains, HistoryEnricher, Lists, NeighborhoodEnricher, Networks)


@hookimpl
def tocsin_commands() -> Any:
    """Return `tocsin enrichers check-list`."""
    return commands


@hookimpl
def tocsin_routes() -> Sequence[Route]:
    """Return the route that lists the lists."""
    return ROUTES


@hookimpl
def tocsin_console_pages() -> Sequence[ConsolePage]:
    """Return the page that shows the lists."""
    return PAGES


@hookimpl
def tocsin_metrics(objects: Mapping[str, Any]) -> Sequence[Metric]:
    """Return the sizes of the lists."""
    return measure_lists(objects)
