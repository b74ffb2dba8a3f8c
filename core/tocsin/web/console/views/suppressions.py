"""Suppression rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tocsin.web.console.forms import Form, to_utc
from tocsin.web.console.page_request import PageRequest, select_query
from tocsin.web.console.pages import ConsoleAction, ConsolePage
from tocsin.web.routes import suppressions as api

_LIST = "/suppressions"


async def show_suppressions(request: PageRequest) -> Mapping[str, Any]:
    """Return one page of the rules."""
    cursor = select_query(request, "cursor")
    return {"found": await request.ask(api.list_suppressions, {}, **cursor)}


def new_suppression(form: Form) -> Mapping[str, Any]:
    """Build the request body that creates a rule; times are in UTC."""
    required = {name: form.text(name) for name in ("name", "owner", "reason")}
    required["ends_at"] = to_utc(form.text("ends_at"))
    return required | form.given("provider", "title", "entity", "cidr")


PAGES = (
    ConsolePage(
        path=_LIST,
        view=show_suppressions,
        template="suppressions.html.j2",
        section="destinations",
    ),
)
ACTIONS = (
    ConsoleAction(
        path=_LIST,
        handler=api.create_suppression,
        page=_LIST,
        message="Suppression rule created. Events about matching incidents are not delivered.",
        body=new_suppression,
    ),
    ConsoleAction(
        path=f"{_LIST}/{{name}}/end",
        handler=api.disable_suppression,
        page=_LIST,
        message="Suppression rule ended. The rule no longer suppresses events.",
    ),
)
