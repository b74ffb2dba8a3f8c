"""The channel `webhook`: signed HTTP POSTs as Standard Webhooks 1.0.0 describes them."""

from tocsin import Channel, hookimpl
from tocsin_plugins.webhook.channel import Webhook

__all__ = ["Webhook", "tocsin_channels"]


@hookimpl
def tocsin_channels() -> type[Channel]:
    """Return the channel."""
    return Webhook
