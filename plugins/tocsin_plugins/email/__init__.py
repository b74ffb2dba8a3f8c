"""The `email` channel: emails over SMTP, in one thread per subject or as digests."""

from tocsin import Channel, hookimpl
from tocsin_plugins.email.channel import Email

__all__ = ["Email", "tocsin_channels"]


@hookimpl
def tocsin_channels() -> type[Channel]:
    """Return the channel."""
    return Email
