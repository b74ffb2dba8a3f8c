"""Splunk Enterprise Security: findings, called notable events before version 8."""

from __future__ import annotations

from tocsin import Provider, hookimpl
from tocsin_connectors.siem.splunk.provider import Splunk

__all__ = ["Splunk"]


@hookimpl
def tocsin_providers() -> type[Provider]:
    """Return the Splunk provider."""
    return Splunk
