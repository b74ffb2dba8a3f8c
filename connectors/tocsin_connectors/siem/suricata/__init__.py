"""Suricata: the alerts in EVE JSON files, grouped into incidents."""

from __future__ import annotations

from tocsin import Provider, hookimpl
from tocsin_connectors.siem.suricata.provider import Suricata

__all__ = ["Suricata"]


@hookimpl
def tocsin_providers() -> type[Provider]:
    """Return the Suricata provider."""
    return Suricata
