"""Wazuh: alerts (4.x) and findings (5.x) in the Wazuh indexer, grouped into incidents."""

from __future__ import annotations

from tocsin import Provider, hookimpl
from tocsin_connectors.siem.wazuh.provider import Wazuh

__all__ = ["Wazuh"]


@hookimpl
def tocsin_providers() -> type[Provider]:
    """Return the Wazuh provider."""
    return Wazuh
