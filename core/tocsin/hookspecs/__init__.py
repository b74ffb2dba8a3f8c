"""Plugin interface: the hooks, and base classes for what they return.

A plugin is a module that an entry point names. It marks its hooks with `hookimpl`. Operators refer
to it by the entry point's name, as in `plugin = "..."`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pluggy

from tocsin.hookspecs.channel import Channel
from tocsin.hookspecs.enricher import Enricher
from tocsin.hookspecs.extensions import (
    ConsolePage,
    ConsoleSection,
    ExtensionRequest,
    Metric,
    Route,
)
from tocsin.hookspecs.intake import (
    Intake,
    IntakePage,
    IntakePosition,
    IntakePush,
    NoIntake,
    QueuedPush,
)
from tocsin.hookspecs.investigator import Investigator, QueryClient
from tocsin.hookspecs.message_actions import MessageAction
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
    "ConsolePage",
    "ConsoleSection",
    "Enricher",
    "ExtensionRequest",
    "HttpClient",
    "HttpResponse",
    "Intake",
    "IntakePage",
    "IntakePosition",
    "IntakePush",
    "Investigator",
    "Knowledge",
    "MessageAction",
    "Metric",
    "NoAttempts",
    "NoIntake",
    "NoKnowledge",
    "NoSockets",
    "Provider",
    "PushRequest",
    "QueryClient",
    "QueuedPush",
    "Route",
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

    Each class has a unique `name`.
    """


@hookspec
def tocsin_investigators() -> type[Investigator]:  # type: ignore[empty-body]
    """Return the investigator class of this plugin. Called once, when plugins are loaded."""


@hookspec
def tocsin_intakes() -> type[Intake]:  # type: ignore[empty-body]
    """Return the intake class of this plugin. Called once, when plugins are loaded."""


@hookspec
def tocsin_template_paths() -> Sequence[Path]:  # type: ignore[empty-body]
    """Return this plugin's template directories. Called once, at startup."""


@hookspec
def tocsin_event(event: Event) -> None:
    """Handle an event that Tocsin has stored. If the call fails, Tocsin repeats it later.

    Events pass through the delivery queue, so a restart never loses an event but can repeat one. To
    recognize a repeated event, use `event.id`. A plain function runs in a separate thread. A
    coroutine function runs in the event loop and must never block it.
    """


@hookspec
def tocsin_incident_changed(event: Event) -> None:
    """Handle a change to an incident's severity, status or disposition.

    `event.data["changes"]` has the old and new value of each member that changed, such as
    `{"status": {"from": "New", "to": "Closed"}}`. `event.data` also has the current `severity`,
    `status` and `disposition`. Tocsin calls this hook in the same way as `tocsin_event`, but only
    for changes that happen after the plugin was enabled.
    """


@hookspec
def tocsin_investigation_finished(event: Event) -> None:
    """Handle an investigation run that has completed or failed.

    `event.data` has `session_id`, `run`, `status`, `created_by`, `schedule_id` (None if a person or
    a program started the investigation), `title`, `risk_score` and `error`.
    `event.context["report"]` is the report, if there is one. Tocsin calls this hook in the same way
    as `tocsin_event`, but only for runs that end after the plugin was enabled. Cancelled runs are
    left out.
    """


@hookspec
def tocsin_commands() -> Any:
    """Return a `typer.Typer` with the commands of this plugin: `tocsin <plugin> <command>`.

    Tocsin calls this hook only when someone runs one of the plugin's commands. Tocsin's own
    commands take precedence.
    """


@hookspec
def tocsin_routes() -> Sequence[Route]:  # type: ignore[empty-body]
    """Return the API routes of this plugin, below `/api/plugins/<plugin>/`.

    Called once, when plugins are loaded.
    """


@hookspec
def tocsin_console_pages() -> Sequence[ConsolePage]:  # type: ignore[empty-body]
    """Return the console pages of this plugin, below `/plugins/<plugin>/`.

    Called once, when plugins are loaded.
    """


@hookspec
def tocsin_metrics(objects: Mapping[str, Any]) -> Sequence[Metric]:  # type: ignore[empty-body]
    """Return the current metrics of this plugin. Called on each scrape, in a separate thread.

    `objects` contains the plugin's running objects on this node, by table name, such as
    `enrichers.lists`. If the call fails or takes over two seconds, the scrape omits these metrics.
    """
