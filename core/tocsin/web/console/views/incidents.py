"""Incidents: list and detail page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tocsin.accounting import MAX_INVESTIGATIONS
from tocsin.model import IncidentStatus, Persona, Severity
from tocsin.reports import draw_timeline
from tocsin.web.console.page_request import PageRequest, select_query
from tocsin.web.console.pages import ConsoleAction, ConsolePage
from tocsin.web.console.views.history import build_history
from tocsin.web.console.views.investigations import read_question
from tocsin.web.routes.accounting import get_incident_trace
from tocsin.web.routes.enrichment import enrich_incident
from tocsin.web.routes.incidents import get_incident, list_incidents
from tocsin.web.routes.sessions import start_investigation

_ONE = "/incidents/{number}"
_FILTERS = ("severity", "status", "timespan")
_TIMESPANS = {
    "PT1H": "last hour",
    "PT24H": "last 24 hours",
    "P7D": "last 7 days",
    "P30D": "last 30 days",
}


async def show_incidents(request: PageRequest) -> Mapping[str, Any]:
    """Return one page of incidents, most recently updated first."""
    chosen = select_query(request, *_FILTERS)
    cursor = select_query(request, "cursor")
    return {
        "page": await request.ask(list_incidents, {}, **chosen, **cursor),
        "chosen": chosen,
        "is_first": not cursor,
        "severities": list(reversed(Severity)),
        "statuses": list(IncidentStatus),
        "timespans": _TIMESPANS,
    }


async def show_incident(request: PageRequest) -> Mapping[str, Any]:
    """Return an incident with its trace, timeline and investigations."""
    incident = await request.ask(get_incident)
    trace = await request.ask(get_incident_trace)
    history = build_history(incident, trace)
    return {
        "incident": incident,
        "trace": trace,
        "most_investigations": MAX_INVESTIGATIONS,
        "history": history,
        "timeline": draw_timeline(history),
        "personas": list(Persona),
    }


PAGES = (
    ConsolePage(
        path="/incidents",
        view=show_incidents,
        template="incidents.html.j2",
        section="incidents",
    ),
    ConsolePage(path=_ONE, view=show_incident, template="incident.html.j2", section="incidents"),
)
ACTIONS = (
    ConsoleAction(
        path=f"{_ONE}/enrich",
        handler=enrich_incident,
        page=_ONE,
        message="Enrichment finished. See the results below.",
        keeps=True,
    ),
    ConsoleAction(
        path=f"{_ONE}/investigate",
        handler=start_investigation,
        page=_ONE,
        message="Investigation started.",
        body=read_question,
        after="/investigations/{session_id}",
    ),
)
