"""Detections, those with the most false positives first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tocsin.model import IncidentDisposition
from tocsin.web.console.page_request import PageRequest, select_query
from tocsin.web.console.pages import ConsoleAction, ConsolePage
from tocsin.web.routes.detections import list_detections

_TIMESPANS = {
    "P7D": "last 7 days",
    "P30D": "last 30 days",
    "P90D": "last 90 days",
    "P365D": "last year",
}


async def show_detections(request: PageRequest) -> Mapping[str, Any]:
    """Return the detections with the most false positives."""
    query = {"timespan": "P90D"} | select_query(request, "timespan", "provider")
    return {
        **await request.ask(list_detections, {}, **query),
        "query": query,
        "timespans": _TIMESPANS,
        "dispositions": list(IncidentDisposition),
        "providers": sorted(each.name for each in request.services.providers),
    }


PAGES = (
    ConsolePage(
        path="/detections",
        view=show_detections,
        template="detections.html.j2",
        section="incidents",
    ),
)
ACTIONS: tuple[ConsoleAction, ...] = ()
