"""AbuseIPDB: report counts and abuse confidence of addresses."""

from __future__ import annotations

from collections.abc import Sequence

from tocsin import Enricher, hookimpl
from tocsin_plugins.abuseipdb.enricher import AbuseIpDb

__all__ = ["AbuseIpDb", "tocsin_enrichers"]


@hookimpl
def tocsin_enrichers() -> Sequence[type[Enricher]]:
    """Return the enricher."""
    return (AbuseIpDb,)
