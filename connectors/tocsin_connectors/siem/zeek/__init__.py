"""Zeek: the notices in JSON logs, grouped into incidents."""

from __future__ import annotations

from tocsin import Provider, hookimpl
from tocsin_connectors.siem.zeek.provider import Zeek

__all__ = ["Zeek"]


@hookimpl
def tocsin_providers() -> type[Provider]:
    """Return the Zeek provider."""
    return Zeek
