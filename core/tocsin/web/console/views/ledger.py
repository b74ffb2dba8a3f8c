"""Ledger of an investigation."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from tocsin.web.console.citations import link_to_reference
from tocsin.web.console.page_request import PageRequest, select_query
from tocsin.web.console.pages import ConsoleAction, ConsolePage
from tocsin.web.routes.investigations import (
    get_investigation,
    get_investigation_step,
    list_investigation_steps,
)

_ALL = "/investigations/{session_id}/steps"
_FILTERS = ("run",)
_MAX_ITEMS = 100
"""Items of each list that a step shows."""


async def show_steps(request: PageRequest) -> Mapping[str, Any]:
    """Return one page of the ledger in the order of its steps."""
    chosen = select_query(request, *_FILTERS)
    cursor = select_query(request, "cursor")
    return {
        "session": await request.ask(get_investigation),
        "page": await request.ask(
            list_investigation_steps, request.path, **chosen, **cursor, limit="200"
        ),
        "chosen": chosen,
    }


async def show_step(request: PageRequest) -> Mapping[str, Any]:
    """Return a step with its query and its answer."""
    session = await request.ask(get_investigation)
    return {
        "session": session,
        "step": await request.ask(get_investigation_step),
        "place_of": partial(link_to_reference, session["id"]),
        "max_items": _MAX_ITEMS,
    }


PAGES = (
    ConsolePage(path=_ALL, view=show_steps, template="steps.html.j2", section="investigations"),
    ConsolePage(
        path=f"{_ALL}/{{step}}",
        view=show_step,
        template="step.html.j2",
        section="investigations",
    ),
)
ACTIONS: tuple[ConsoleAction, ...] = ()
