"""Graylog: the alerts of a server or cluster."""

from __future__ import annotations

from tocsin import Provider, hookimpl
from tocsin_connectors.siem.graylog.provider import Graylog

__all__ = ["Graylog"]


@hookimpl
def tocsin_providers() -> type[Provider]:
    """Return the Graylog provider."""
    return Graylog
