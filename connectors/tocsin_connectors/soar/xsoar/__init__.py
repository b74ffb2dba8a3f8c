"""Cortex XSOAR 8 and 6: incidents with labels and War Room entries."""

from __future__ import annotations

from tocsin import Channel, hookimpl
from tocsin_connectors.soar.xsoar.channel import Xsoar

__all__ = ["Xsoar"]


@hookimpl
def tocsin_channels() -> type[Channel]:
    """Return the channel."""
    return Xsoar
