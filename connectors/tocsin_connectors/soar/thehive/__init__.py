"""TheHive 5: alerts with observables and comments."""

from __future__ import annotations

from tocsin import Channel, hookimpl
from tocsin_connectors.soar.thehive.channel import TheHive

__all__ = ["TheHive"]


@hookimpl
def tocsin_channels() -> type[Channel]:
    """Return the channel."""
    return TheHive
