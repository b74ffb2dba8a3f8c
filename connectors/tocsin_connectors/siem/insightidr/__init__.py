"""Rapid7 InsightIDR: the investigations of an organization."""

from __future__ import annotations

from tocsin import Provider, hookimpl
from tocsin_connectors.siem.insightidr.provider import InsightIDR

__all__ = ["InsightIDR"]


@hookimpl
def tocsin_providers() -> type[Provider]:
    """Return the InsightIDR provider."""
    return InsightIDR
