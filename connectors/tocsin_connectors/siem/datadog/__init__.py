"""Datadog: the security signals of an organization."""

from __future__ import annotations

from tocsin import Provider, hookimpl
from tocsin_connectors.siem.datadog.provider import Datadog

__all__ = ["Datadog"]


@hookimpl
def tocsin_providers() -> type[Provider]:
    """Return the Datadog provider."""
    return Datadog
