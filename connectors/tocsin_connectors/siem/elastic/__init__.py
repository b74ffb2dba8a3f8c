"""Elastic Security: detection alerts and cases."""

from __future__ import annotations

from tocsin import Provider, hookimpl
from tocsin_connectors.siem.elastic.provider import Elastic

__all__ = ["Elastic"]


@hookimpl
def tocsin_providers() -> type[Provider]:
    """Return the Elastic provider."""
    return Elastic
