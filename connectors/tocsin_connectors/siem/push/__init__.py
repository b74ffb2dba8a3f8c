"""Push provider for senders of JSON, with mappings for common formats."""

from __future__ import annotations

from tocsin import Provider, hookimpl
from tocsin_connectors.siem.push.provider import Push

__all__ = ["Push"]


@hookimpl
def tocsin_providers() -> type[Provider]:
    """Return the provider."""
    return Push
