"""Plugin interface: the hooks, and the base classes of what they return."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pluggy

from tocsin.hookspecs.channel import Channel
from tocsin.hookspecs.enricher import Enricher
from tocsin.hookspecs.investigator import Investigator, QueryClient
from tocsin.hookspecs.provider import Capability, Provider, PushRequest
from tocsin.hookspecs.tools import (
    AttemptLog,
    HttpClient,
    HttpResponse,
    Knowledge,
    NoAttempts,
    NoKnowledge,
    NoSockets,
    Sockets,
    Tools,
)
from tocsin.model import Event

__all__ = [
    "AttemptLog",
    "Capability",
    "Channel",
    "Enricher",
    "HttpClient",
    "HttpResponse",
    "Investigator",
    "Knowledge",
    "NoAttempts",
    "NoKnowledge",
    "NoSockets",
    "Provider",
    "PushRequest",
    "QueryClient",
    "Sockets",
    "Tools",
    "hookimpl",
]

hookspec = pluggy.HookspecMarker("tocsin")
hookimpl = pluggy.HookimplMarker("tocsin")
"""Marks the functions of a plugin's module that implement hooks."""


@hookspec
def tocsin_providers() -> type[Provider]:  # type: ignore[empty-body]
    """Return the kind of provider that this plugin offers. Called once, when plugins are loaded."""


@hookspec
def tocsin_channels() -> type[Channel]:  # type: ignore[empty-body]
    """Return the kind of channel that this plugin offers. Called once, when plugins are loaded."""


@hookspec
def tocsin_enrichers() -> Sequence[type[Enricher]]:  # type: ignore[empty-body]
    """Return the kinds of enricher that this plugin offers. Called once, when plugins are loaded.

    Each has a `name` that no other kind of this service has.
    """


@hookspec
def tocsin_investigators() -> type[Investigator]:  # type: ignore[empty-body]
    """Return the investigator that this plugin offers. Called once, when plugins are loaded."""


@hookspec
def tocsin_template_paths() -> Sequence[Path]:  # type: ignore[empty-body]
    """Return folders that hold templates, `<receiver>/<event>.json.j2`. Called once, at start."""


@hookspec
def tocsin_event(event: Event) -> None:
    """Hear of an event that is committed. Called for each; one that raises is called again later.

    What is heard goes through the queue like a delivery, so a restart loses none, but may repeat
    one: its `id` tells. May be a coroutine function.
    """
