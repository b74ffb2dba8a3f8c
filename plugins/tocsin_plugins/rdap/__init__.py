"""RDAP: registration data of domains and networks."""

from __future__ import annotations

from collections.abc import Sequence

from tocsin import Enricher, hookimpl
from tocsin_plugins.rdap.enricher import Rdap

__all__ = ["Rdap", "tocsin_enrichers"]


@hookimpl
def tocsin_enrichers() -> Sequence[type[Enricher]]:
    """Return the enricher."""
    return (Rdap,)
