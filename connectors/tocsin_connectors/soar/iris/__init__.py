"""DFIR-IRIS 2.4: alerts with IOCs and comments."""

from __future__ import annotations

from tocsin import Channel, hookimpl
from tocsin_connectors.soar.iris.channel import Iris

__all__ = ["Iris"]


@hookimpl
def tocsin_channels() -> type[Channel]:
    """Return the channel."""
    return Iris
