"""OCSF: Detection and Incident Findings in JSON Lines files."""

from __future__ import annotations

from tocsin import Provider, hookimpl
from tocsin_connectors.siem.ocsf.provider import Ocsf

__all__ = ["Ocsf"]


@hookimpl
def tocsin_providers() -> type[Provider]:
    """Return the OCSF provider."""
    return Ocsf
