"""Tickets whose status does not match their incident's status."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tocsin.web.console.page_request import PageRequest, select_query
from tocsin.web.console.pages import ConsoleAction, ConsolePage
from tocsin.web.routes import status_mismatches as api

_LIST = "/ticket-statuses"


async def show_ticket_statuses(request: PageRequest) -> Mapping[str, Any]:
    """Return one page of the mismatches, either all or only those of one kind."""
    query = select_query(request, "cursor", "mismatch")
    found = await request.ask(api.list_status_mismatches, {}, **query)
    return {"found": found, "chosen": query.get("mismatch", "")}


PAGES = (
    ConsolePage(
        path=_LIST,
        view=show_ticket_statuses,
        template="ticket_statuses.html.j2",
        section="destinations",
    ),
)
ACTIONS: tuple[ConsoleAction, ...] = ()
