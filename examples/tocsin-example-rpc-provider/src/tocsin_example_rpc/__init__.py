"""Provider for a JSON-RPC API."""

from __future__ import annotations

from tocsin import Provider, hookimpl
from tocsin_example_rpc.provider import RpcProvider


@hookimpl
def tocsin_providers() -> type[Provider]:
    """Return the provider."""
    return RpcProvider
