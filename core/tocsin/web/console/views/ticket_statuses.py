"""Tickets whose status does not match their incident's status."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tocsin.web.console.page_request import PageRequest, select_query
from tocsin.web.console.pages import ConsoleAction, ConsolePage
from tocsin.web.console.views.destinations import load_all_destinations
from tocsin.web.routes import status_mismatches as api

_LIST = "/ticket-statuses"


async def show_ticket_statuses(request: PageRequest) -> Mapping[str, Any]:
    """Return one page of the mismatches, and which destinations read statuses."""
    query = select_query(request, "cursor", "mismatch")
    found = await request.ask(api.list_status_mismatches, {}, **query)
    destinations = await load_all_destinations(request)
    readers = [each["name"] for each in destinations if each["settings"].get("status_interval")]
    return {"found": found, "chosen": query.get("mismatch", ""), "readers": readers}


PAGES = (
    ConsolePage(
        path=_LIST,
        view=show_ticket_statuses,
        template="ticket_statuses.html.j2",
        section="destinations",
    ),
)
ACTIONS: tuple[ConsoleAction, ...] = ()
