"""Tickets whose status does not match their incident's status."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from tocsin.web.console.page_request import PageRequest, select_query
from tocsin.web.console.pages import ConsoleAction, ConsolePage
from tocsin.web.routes import status_mismatches as api
from tocsin.web.routes.destinations import list_destinations

_LIST = "/ticket-statuses"


async def show_ticket_statuses(request: PageRequest) -> Mapping[str, Any]:
    """Return one page of the mismatches, and which destinations read statuses."""
    query = select_query(request, "cursor", "mismatch")
    found = await request.ask(api.list_status_mismatches, {}, **query)
    readers = [name async for name in _find_readers(request)]
    return {"found": found, "chosen": query.get("mismatch", ""), "readers": readers}


async def _find_readers(request: PageRequest) -> AsyncIterator[str]:
    """Yield the names of the destinations with a `status_interval`."""
    query = {"limit": "200"}
    while True:
        page = await request.ask(list_destinations, {}, **query)
        for destination in page["destinations"]:
            if destination["settings"].get("status_interval"):
                yield destination["name"]
        if page["next_cursor"] is None:
            return
        query["cursor"] = page["next_cursor"]


PAGES = (
    ConsolePage(
        path=_LIST,
        view=show_ticket_statuses,
        template="ticket_statuses.html.j2",
        section="destinations",
    ),
)
ACTIONS: tuple[ConsoleAction, ...] = ()
