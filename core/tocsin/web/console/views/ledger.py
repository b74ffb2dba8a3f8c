"""The ledger of an investigation: what was asked of whom, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from tocsin.web.console.pages import Action, Page
from tocsin.web.console.reading import Reading
from tocsin.web.console.views.citing import place_of
from tocsin.web.console.views.narrowing import chosen_from
from tocsin.web.routes.investigations import get_investigation, get_step, list_steps

_ALL = "/investigations/{session_id}/steps"
_FILTERS = ("run",)
_MOST_TOLD = 100
"""So much of each list is shown that was asked or answered."""


async def show_steps(reading: Reading) -> Mapping[str, Any]:
    """Return one page of the ledger, in the order of the steps."""
    chosen = chosen_from(reading, *_FILTERS)
    cursor = chosen_from(reading, "cursor")
    return {
        "session": await reading.ask(get_investigation),
        "page": await reading.ask(list_steps, reading.path, **chosen, **cursor, limit="200"),
        "chosen": chosen,
    }


async def show_step(reading: Reading) -> Mapping[str, Any]:
    """Return one step with all that was asked and answered."""
    session = await reading.ask(get_investigation)
    return {
        "session": session,
        "step": await reading.ask(get_step),
        "place_of": partial(place_of, session["id"]),
        "most_told": _MOST_TOLD,
    }


PAGES = (
    Page(path=_ALL, view=show_steps, template="steps.html.j2", section="investigations"),
    Page(
        path=f"{_ALL}/{{step}}",
        view=show_step,
        template="step.html.j2",
        section="investigations",
    ),
)
ACTIONS: tuple[Action, ...] = ()
