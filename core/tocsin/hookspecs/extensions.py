"""Extensions of the service by plugins: API routes, console pages and metrics."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import iscoroutinefunction
from typing import Any, Literal

from pydantic import BaseModel

_PATH = re.compile(r"(/[a-z0-9-]+|/\{[a-z_]+\})+")
_NAME = re.compile(r"[a-z][a-z0-9_]*")

RouteAccess = Literal[
    "admin",
    "investigations:read",
    "investigations:write",
    "incidents:read",
    "incidents:write",
    "search:read",
    "graph:read",
]
"""The role `admin`, or the scope that a credential needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtensionRequest:
    """A request for a plugin's route or page, after Tocsin has authenticated and validated it."""

    caller: str
    """The ID of the caller's credential, or the name of a person who is signed in to the
    console."""
    path: Mapping[str, str]
    """The named parts of the path."""
    query: Any
    """The query parameters: for routes, an instance of the route's `query` class; for pages, a
    mapping."""
    body: Any = None
    """The body: an instance of the route's `body` class; None for pages and for routes without a
    body."""
    objects: Mapping[str, Any] = field(default_factory=dict)
    """The plugin's running objects on this node, by table name, such as `enrichers.lists`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A plugin's API endpoint, at `/api/plugins/<plugin><path>`.

    Tocsin rejects callers without the required access before it calls the plugin. The API's rate
    limits apply. The OpenAPI document contains the route and its models.
    """

    path: str
    """The path, such as `/lists/{name}`."""
    access: RouteAccess
    """Which access callers need: `admin` for that role, or a scope such as `incidents:read`."""
    summary: str
    handler: Callable[[ExtensionRequest], Awaitable[BaseModel]]
    """A coroutine function that returns an instance of `response`, within 30 seconds. Its docstring
    describes the route. To respond with 404, 422 or 409, raise `NotFoundError`, `InvalidInputError`
    or `ConflictError`. After any other error, the response has status 500 and names the plugin.
    """
    response: type[BaseModel]
    method: Literal["GET", "POST"] = "GET"
    query: type[BaseModel] | None = None
    """The query parameters, each with a description. Unknown parameters are errors."""
    body: type[BaseModel] | None = None
    """The JSON body of a POST; unknown members are errors."""

    def __post_init__(self) -> None:
        """Raise ValueError for a path that cannot be served, TypeError for another handler."""
        _require_path(self.path)
        _require_coroutine(self.handler)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleSection:
    """A part of a console page: a text and, if it has columns, a table.

    The console shows the text and the table's cells as plain text, never as HTML.
    """

    heading: str = ""
    text: str = ""
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[object]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolePage:
    """A plugin's page in the console, at `/plugins/<plugin><path>`, with a link in the menu."""

    path: str
    title: str
    view: Callable[[ExtensionRequest], Awaitable[Sequence[ConsoleSection]]]
    """A coroutine function that returns the sections within 30 seconds."""
    role: Literal["admin", "viewer"] = "admin"
    """The lowest role that can see the page."""

    def __post_init__(self) -> None:
        """Raise ValueError for a path that cannot be served, TypeError for another view."""
        _require_path(self.path)
        _require_coroutine(self.view)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A metric in `/metrics`, with the name `tocsin_plugin_<plugin>_<name>`."""

    name: str
    description: str
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)
    kind: Literal["gauge", "counter"] = "gauge"

    def __post_init__(self) -> None:
        """Raise ValueError for a name that Prometheus does not accept."""
        for name in (self.name, *self.labels):
            if not _NAME.fullmatch(name):
                raise ValueError(f"{name!r}: use lower-case letters, digits and _")


def _require_path(path: str) -> None:
    if not _PATH.fullmatch(path):
        raise ValueError(f"path {path!r}: write it like `/lists/{{name}}`")


def _require_coroutine(function: Callable[..., object]) -> None:
    if not iscoroutinefunction(function):
        raise TypeError(f"{function!r} is no coroutine function; write `async def`")
