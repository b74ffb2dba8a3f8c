"""Definitions of pages and actions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tocsin.credentials import ConsoleRole
from tocsin.web.console.forms import Form
from tocsin.web.console.page_request import PageRequest
from tocsin.web.context import AsyncHandler, TransactionHandler

View = Callable[[PageRequest], Awaitable[Mapping[str, Any]]]
"""Returns the context of the page's template."""


def _nothing(_form: Form) -> Mapping[str, Any]:
    return {}


def _no_results(_content: Any) -> Mapping[str, str]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolePage:
    """A page of the console."""

    path: str
    view: View
    template: str
    section: str
    """Navigation entry of the page."""
    role: ConsoleRole = ConsoleRole.VIEWER
    is_live: bool = False
    """Whether the page updates itself while it is open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleAction:
    """A form that calls an API endpoint."""

    path: str
    handler: TransactionHandler | AsyncHandler
    """Handler of the endpoint; the path parameters of the endpoint are in `path` too."""
    page: str
    """Path of the page with the form, which also shows errors."""
    message: str
    """Message after success."""
    body: Callable[[Form], Mapping[str, Any]] = _nothing
    """Builds the body of the API request from the form."""
    after: str | None = None
    """Path to redirect to, with members of the response as parameters. Default: `page`."""
    keeps: bool = False
    """Whether the page renders the response as `answer` instead of redirecting."""
    count_results: Callable[[Any], Mapping[str, str] | None] = _no_results
    """Returns results to add to the query of the next page, next to the query of the form. None
    renders the response as `keeps` does."""
    gives_access: bool = False
    """Whether the action gives access or credentials, which requires a recent sign-in."""


def message_key(action: ConsoleAction) -> str:
    """Return the query value that selects the message of an action."""
    return action.path.replace("{", "").replace("}", "").strip("/").replace("/", "-")
