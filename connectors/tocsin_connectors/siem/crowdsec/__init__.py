"""CrowdSec: the alerts of a Local API, each of them an incident."""

from __future__ import annotations

from tocsin import Provider, hookimpl
from tocsin_connectors.siem.crowdsec.provider import CrowdSec

__all__ = ["CrowdSec"]


@hookimpl
def tocsin_providers() -> type[Provider]:
    """Return the CrowdSec provider."""
    return CrowdSec
