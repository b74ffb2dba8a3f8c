"""CrowdStrike Falcon: the alerts of a customer."""

from __future__ import annotations

from tocsin import Provider, hookimpl
from tocsin_connectors.siem.crowdstrike.provider import CrowdStrike

__all__ = ["CrowdStrike"]


@hookimpl
def tocsin_providers() -> type[Provider]:
    """Return the CrowdStrike provider."""
    return CrowdStrike
