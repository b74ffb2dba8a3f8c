"""Microsoft Defender XDR: the incidents of a tenant."""

from __future__ import annotations

from tocsin import Provider, hookimpl
from tocsin_connectors.siem.defender.provider import Defender

__all__ = ["Defender"]


@hookimpl
def tocsin_providers() -> type[Provider]:
    """Return the Defender provider."""
    return Defender
