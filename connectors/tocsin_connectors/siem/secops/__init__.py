"""Google SecOps (Chronicle): the detections of an instance."""

from __future__ import annotations

from tocsin import Provider, hookimpl
from tocsin_connectors.siem.secops.provider import SecOps

__all__ = ["SecOps"]


@hookimpl
def tocsin_providers() -> type[Provider]:
    """Return the SecOps provider."""
    return SecOps
