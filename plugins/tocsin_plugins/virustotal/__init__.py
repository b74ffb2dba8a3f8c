"""VirusTotal: scanner verdicts on addresses, domains, URLs and files."""

from __future__ import annotations

from collections.abc import Sequence

from tocsin import Enricher, hookimpl
from tocsin_plugins.virustotal.enricher import VirusTotal

__all__ = ["VirusTotal", "tocsin_enrichers"]


@hookimpl
def tocsin_enrichers() -> Sequence[type[Enricher]]:
    """Return the enricher."""
    return (VirusTotal,)
