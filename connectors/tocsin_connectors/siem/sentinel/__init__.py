"""Microsoft Sentinel: the incidents of a workspace."""

from __future__ import annotations

from tocsin import Provider, hookimpl
from tocsin_connectors.siem.sentinel.provider import Sentinel

__all__ = ["Sentinel"]


@hookimpl
def tocsin_providers() -> type[Provider]:
    """Return the Sentinel provider."""
    return Sentinel
