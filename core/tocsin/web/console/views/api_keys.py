"""API keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tocsin.credentials import ConsoleRole
from tocsin.web.console.forms import Form
from tocsin.web.console.page_request import PageRequest, select_query
from tocsin.web.console.pages import ConsoleAction, ConsolePage
from tocsin.web.openapi.security import SCOPES
from tocsin.web.routes import api_keys as api

_LIST, _ONE = "/admin/api-keys", "/admin/api-keys/{key_id}"


async def show_keys(request: PageRequest) -> Mapping[str, Any]:
    """Return one page of the keys and the scopes for new ones."""
    query, cursor = select_query(request, "search"), select_query(request, "cursor")
    return {
        "found": await request.ask(api.list_api_keys, {}, **query, **cursor),
        "query": query,
        "scopes": SCOPES,
    }


async def show_key(request: PageRequest) -> Mapping[str, Any]:
    """Return a key without its value."""
    return {"key": await request.ask(api.get_api_key), "scopes": SCOPES}


def new_key(form: Form) -> Mapping[str, Any]:
    """Build the request body that creates a key."""
    return {
        "name": form.text("name"),
        "description": form.text("description"),
        "scopes": form.several.get("scopes", []),
        **form.numbers("expires_in_days"),
    }


def rotation(form: Form) -> Mapping[str, Any]:
    """Build the request body that rotates a key; empty fields use the defaults."""
    return form.numbers("grace_period_days", "expires_in_days")


PAGES = (
    ConsolePage(
        path=_LIST,
        view=show_keys,
        template="api_keys.html.j2",
        section="api-keys",
        role=ConsoleRole.ADMIN,
    ),
    ConsolePage(
        path=_ONE,
        view=show_key,
        template="api_key.html.j2",
        section="api-keys",
        role=ConsoleRole.ADMIN,
    ),
)
ACTIONS = (
    ConsoleAction(
        path=_LIST,
        handler=api.create_api_key,
        page=_LIST,
        message="API key created.",
        body=new_key,
        keeps=True,
        gives_access=True,
    ),
    ConsoleAction(
        path=_ONE,
        handler=api.rotate_api_key,
        page=_ONE,
        message="API key rotated.",
        body=rotation,
        keeps=True,
        gives_access=True,
    ),
    ConsoleAction(
        path=f"{_ONE}/disable",
        handler=api.disable_api_key,
        page=_ONE,
        message="API key disabled. Tocsin rejects requests with this key.",
    ),
)
