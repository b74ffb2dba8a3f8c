"""The guarded way to the network: the only one that plugins are handed."""

from tocsin.net.client import GuardedClient, open_client

__all__ = ["GuardedClient", "open_client"]
