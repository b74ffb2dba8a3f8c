"""OpenSearch: the alerts of Security Analytics, each of them an incident."""

from __future__ import annotations

from tocsin import Provider, hookimpl
from tocsin_connectors.siem.opensearch.provider import OpenSearch

__all__ = ["OpenSearch"]


@hookimpl
def tocsin_providers() -> type[Provider]:
    """Return the OpenSearch provider."""
    return OpenSearch
