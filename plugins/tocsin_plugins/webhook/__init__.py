"""The channel `webhook`: signed HTTP POSTs as specified by Standard Webhooks 1.0.0."""

from tocsin import Channel, hookimpl
from tocsin_plugins.webhook.channel import Webhook

__all__ = ["Webhook", "tocsin_channels"]


@hookimpl
def tocsin_channels() -> type[Channel]:
    """Return the channel."""
    return Webhook
