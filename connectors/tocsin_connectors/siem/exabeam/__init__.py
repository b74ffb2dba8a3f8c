"""Exabeam New-Scale: the cases or alerts of a Threat Center."""

from __future__ import annotations

from tocsin import Provider, hookimpl
from tocsin_connectors.siem.exabeam.provider import Exabeam

__all__ = ["Exabeam"]


@hookimpl
def tocsin_providers() -> type[Provider]:
    """Return the Exabeam provider."""
    return Exabeam
