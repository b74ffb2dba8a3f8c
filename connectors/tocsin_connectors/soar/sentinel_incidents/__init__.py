"""Microsoft Sentinel: incidents that Tocsin creates, with comments."""

from __future__ import annotations

from tocsin import Channel, hookimpl
from tocsin_connectors.soar.sentinel_incidents.channel import SentinelIncidents

__all__ = ["SentinelIncidents"]


@hookimpl
def tocsin_channels() -> type[Channel]:
    """Return the channel."""
    return SentinelIncidents
