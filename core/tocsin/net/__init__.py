"""The guarded ways to the network: the only ones that plugins are handed."""

from tocsin.net.client import GuardedClient, open_client
from tocsin.net.sockets import SocketOpener, open_sockets

__all__ = ["GuardedClient", "SocketOpener", "open_client", "open_sockets"]
