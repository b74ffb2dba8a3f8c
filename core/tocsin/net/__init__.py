"""Guarded network access, the only one that plugins receive."""

from tocsin.net.client import GuardedClient, open_client
from tocsin.net.sockets import SocketOpener, open_sockets
from tocsin.net.urls import literal_address, parse_url

__all__ = [
    "GuardedClient",
    "SocketOpener",
    "literal_address",
    "open_client",
    "open_sockets",
    "parse_url",
]
