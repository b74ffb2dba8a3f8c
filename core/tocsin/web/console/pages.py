"""What a page and an action of the console are."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tocsin.credentials import ConsoleRole
from tocsin.web.console.forms import Form
from tocsin.web.console.page_request import PageRequest
from tocsin.web.context import AsyncHandler, TransactionHandler

View = Callable[[PageRequest], Awaitable[Mapping[str, Any]]]
"""Returns what the page's template is rendered with."""


def _nothing(_form: Form) -> Mapping[str, Any]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolePage:
    """One page."""

    path: str
    view: View
    template: str
    section: str
    """The entry of the navigation that it belongs to."""
    role: ConsoleRole = ConsoleRole.VIEWER
    is_live: bool = False
    """Whether it is brought up to date while one looks at it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleAction:
    """A form that calls an endpoint of the API, for admins."""

    path: str
    handler: TransactionHandler | AsyncHandler
    """The endpoint's; its path has names that the action's path has too."""
    page: str
    """The path of the page with the form, which shows what was wrong."""
    said: str
    """What is told once it is done."""
    body: Callable[[Form], Mapping[str, Any]] = _nothing
    """Returns the endpoint's body from the form."""
    after: str | None = None
    """The path to go to once it is done, with names that the answer has; by default `page`."""
    keeps: bool = False
    """Whether the page shows the answer at once, as `answer`, since nothing else will have it."""


def message_key(action: ConsoleAction) -> str:
    """Return the word by which the next page knows what was done."""
    return action.path.replace("{", "").replace("}", "").strip("/").replace("/", "-")
