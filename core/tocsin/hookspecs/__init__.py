"""Plugin interface: the hooks, and the base classes of what they return.

A plugin is a module named by an entry point. It implements hooks with `hookimpl`; the entry point's
name is the name that operators write as `plugin = "..."`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pluggy

from tocsin.hookspecs.channel import Channel
from tocsin.hookspecs.enricher import Enricher
from tocsin.hookspecs.investigator import Investigator, QueryClient
from tocsin.hookspecs.provider import Capability, Provider, PushRequest
from tocsin.hookspecs.retirement import ApiRetirement
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
    "ApiRetirement",
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
"""Marks functions of a plugin module that implement hooks."""


@hookspec
def tocsin_providers() -> type[Provider]:  # type: ignore[empty-body]
    """Return the provider class of this plugin. Called once, when plugins are loaded."""


@hookspec
def tocsin_channels() -> type[Channel]:  # type: ignore[empty-body]
    """Return the channel class of this plugin. Called once, when plugins are loaded."""


@hookspec
def tocsin_enrichers() -> Sequence[type[Enricher]]:  # type: ignore[empty-body]
    """Return the enricher classes of this plugin. Called once, when plugins are loaded.

    Each has a unique `name`.
    """


@hookspec
def tocsin_investigators() -> type[Investigator]:  # type: ignore[empty-body]
    """Return the investigator class of this plugin. Called once, when plugins are loaded."""


@hookspec
def tocsin_template_paths() -> Sequence[Path]:  # type: ignore[empty-body]
    """Return directories with templates, `<receiver>/<event>.json.j2`. Called once, at startup."""


@hookspec
def tocsin_event(event: Event) -> None:
    """Handle a committed event. Called for each event; if it raises, it is called again later.

    Events pass through the queue like deliveries, so a restart loses none, but may repeat one; use
    `id` to recognize it. May be a coroutine function.
    """
