"""The channel `email`: mail over SMTP, one thread per subject, or digests."""

from tocsin import Channel, hookimpl
from tocsin_plugins.email.channel import Email

__all__ = ["Email", "tocsin_channels"]


@hookimpl
def tocsin_channels() -> type[Channel]:
    """Return the channel."""
    return Email
