"""The default investigator: understand, gather, pivot, correlate, score, report."""

from __future__ import annotations

from tocsin import Investigator, hookimpl
from tocsin_plugins.investigator.engine import DefaultInvestigator

__all__ = ["DefaultInvestigator", "tocsin_investigators"]


@hookimpl
def tocsin_investigators() -> type[Investigator]:
    """Return the default investigator."""
    return DefaultInvestigator
