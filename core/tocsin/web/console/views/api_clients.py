"""API clients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tocsin.credentials import ConsoleRole
from tocsin.web.console.forms import Form
from tocsin.web.console.page_request import PageRequest, select_query
from tocsin.web.console.pages import ConsoleAction, ConsolePage
from tocsin.web.openapi.security import SCOPES
from tocsin.web.routes import api_clients as api
from tocsin.web.routes.oauth import TOKEN_PATH

_LIST, _ONE = "/admin/api-clients", "/admin/api-clients/{client_id}"


async def show_clients(request: PageRequest) -> Mapping[str, Any]:
    """Return one page of the clients and the scopes for new ones."""
    query, cursor = select_query(request, "search"), select_query(request, "cursor")
    return {
        "found": await request.ask(api.list_api_clients, {}, **query, **cursor),
        "query": query,
        "scopes": SCOPES,
    }


async def show_client(request: PageRequest) -> Mapping[str, Any]:
    """Return a client without its secret."""
    return {
        "client": await request.ask(api.get_api_client),
        "scopes": SCOPES,
        "token_endpoint": request.services.issuer_url + TOKEN_PATH,
    }


def new_client(form: Form) -> Mapping[str, Any]:
    """Build the request body that creates a client."""
    return {
        "name": form.text("name"),
        "description": form.text("description"),
        "scopes": form.several.get("scopes", []),
    }


PAGES = (
    ConsolePage(
        path=_LIST,
        view=show_clients,
        template="api_clients.html.j2",
        section="api-clients",
        role=ConsoleRole.ADMIN,
    ),
    ConsolePage(
        path=_ONE,
        view=show_client,
        template="api_client.html.j2",
        section="api-clients",
        role=ConsoleRole.ADMIN,
    ),
)
ACTIONS = (
    ConsoleAction(
        path=_LIST,
        handler=api.create_api_client,
        page=_LIST,
        message="API client created.",
        body=new_client,
        keeps=True,
        gives_access=True,
    ),
    ConsoleAction(
        path=_ONE,
        handler=api.regenerate_api_client_secret,
        page=_ONE,
        message="New client secret generated. The previous secret no longer works.",
        keeps=True,
        gives_access=True,
    ),
    ConsoleAction(
        path=f"{_ONE}/revoke-tokens",
        handler=api.revoke_api_client_tokens,
        page=_ONE,
        message="All access tokens of the API client were revoked. An active client can request "
        "new tokens.",
    ),
    ConsoleAction(
        path=f"{_ONE}/disable",
        handler=api.disable_api_client,
        page=_ONE,
        message="API client disabled. The client can no longer get access tokens.",
    ),
)
