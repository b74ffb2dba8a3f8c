"""Elastic Common Schema: the alerts in files that Beats, Elastic Agent or Logstash write."""

from __future__ import annotations

from tocsin import Provider, hookimpl
from tocsin_connectors.siem.ecs.provider import Ecs

__all__ = ["Ecs"]


@hookimpl
def tocsin_providers() -> type[Provider]:
    """Return the ECS provider."""
    return Ecs
