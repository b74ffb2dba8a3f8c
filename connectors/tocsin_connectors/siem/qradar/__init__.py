"""IBM QRadar: its offenses."""

from __future__ import annotations

from tocsin import Provider, hookimpl
from tocsin_connectors.siem.qradar.provider import QRadar

__all__ = ["QRadar"]


@hookimpl
def tocsin_providers() -> type[Provider]:
    """Return the QRadar provider."""
    return QRadar
