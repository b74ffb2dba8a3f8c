"""Falco: the alerts in JSON files, grouped into incidents."""

from __future__ import annotations

from tocsin import Provider, hookimpl
from tocsin_connectors.siem.falco.provider import Falco

__all__ = ["Falco"]


@hookimpl
def tocsin_providers() -> type[Provider]:
    """Return the Falco provider."""
    return Falco
