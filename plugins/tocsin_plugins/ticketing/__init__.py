"""Ticketing channel: one ticket for each incident or schedule."""

from __future__ import annotations

from tocsin import Channel, hookimpl
from tocsin_plugins.ticketing.channel import Ticketing

__all__ = ["Ticketing"]


@hookimpl
def tocsin_channels() -> type[Channel]:
    """Return the channel."""
    return Ticketing
