"""GreyNoise: internet scanners and common business services."""

from __future__ import annotations

from collections.abc import Sequence

from tocsin import Enricher, hookimpl
from tocsin_plugins.greynoise.enricher import GreyNoise

__all__ = ["GreyNoise", "tocsin_enrichers"]


@hookimpl
def tocsin_enrichers() -> Sequence[type[Enricher]]:
    """Return the enricher."""
    return (GreyNoise,)
