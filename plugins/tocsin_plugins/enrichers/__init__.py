"""Offline enrichers, enabled unless `plugins.toml` disables them."""

from __future__ import annotations

from collections.abc import Sequence

from tocsin import Enricher, hookimpl
from tocsin_plugins.enrichers.attack import Attack
from tocsin_plugins.enrichers.cve import Cve
from tocsin_plugins.enrichers.domains import Domains
from tocsin_plugins.enrichers.history import HistoryEnricher
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
    "tocsin_enrichers",
]


@hookimpl
def tocsin_enrichers() -> Sequence[type[Enricher]]:
    """Return the enrichers."""
    return (Attack, Cve, Domains, HistoryEnricher, Lists, NeighborhoodEnricher, Networks)
