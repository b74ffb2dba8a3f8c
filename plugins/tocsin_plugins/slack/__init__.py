"""The channel `slack`: threads from a bot, or plain messages through an incoming webhook."""

from tocsin import Channel, hookimpl
from tocsin_plugins.slack.channel import Slack

__all__ = ["Slack", "tocsin_channels"]


@hookimpl
def tocsin_channels() -> type[Channel]:
    """Return the channel."""
    return Slack
