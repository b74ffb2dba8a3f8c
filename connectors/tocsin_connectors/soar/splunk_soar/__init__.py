"""Splunk SOAR: events (containers) with artifacts and notes."""

from __future__ import annotations

from tocsin import Channel, hookimpl
from tocsin_connectors.soar.splunk_soar.channel import SplunkSoar

__all__ = ["SplunkSoar"]


@hookimpl
def tocsin_channels() -> type[Channel]:
    """Return the channel."""
    return SplunkSoar
