"""MISP: attributes and events of a threat-sharing platform."""

from __future__ import annotations

from collections.abc import Sequence

from tocsin import Enricher, hookimpl
from tocsin_plugins.misp.enricher import Misp

__all__ = ["Misp", "tocsin_enrichers"]


@hookimpl
def tocsin_enrichers() -> Sequence[type[Enricher]]:
    """Return the enricher."""
    return (Misp,)
