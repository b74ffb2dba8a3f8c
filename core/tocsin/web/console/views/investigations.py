"""Investigations: list, session page and report."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any

from tocsin.model import Persona, Phase, SessionStatus
from tocsin.reports import (
    MAX_ROWS,
    draw_graph,
    draw_timeline,
    format_number,
    format_signed,
    from_json,
)
from tocsin.web.console.citations import link_to_reference
from tocsin.web.console.forms import Form
from tocsin.web.console.page_request import PageRequest, select_query
from tocsin.web.console.pages import ConsoleAction, ConsolePage
from tocsin.web.pagination import PageCursor
from tocsin.web.routes.investigations import (
    get_investigation_report,
    list_investigation_steps,
    list_investigations,
)
from tocsin.web.routes.providers import list_providers
from tocsin.web.routes.sessions import (
    cancel_session,
    get_session,
    send_session_message,
    start_investigation,
)
from tocsin.web.schemas.investigations import STEPS


def build_report_view(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the template context of a report, with its diagrams."""
    report = from_json(document)
    return {
        "report": report,
        "score": format_number(report.risk_score),
        "share": report.risk_score,
        "signed": format_signed,
        "timeline": draw_timeline(report.timeline),
        "graph": draw_graph(report),
        "most": MAX_ROWS,
    }


_ALL = "/investigations"
_ONE = f"{_ALL}/{{session_id}}"
_FILTERS = ("status", "persona", "provider", "schedule")
_UNDER_WAY = {SessionStatus.QUEUED, SessionStatus.RUNNING}
_LATEST = 12
"""Number of latest steps that a running investigation shows."""


async def show_investigations(request: PageRequest) -> Mapping[str, Any]:
    """Return one page of investigations, newest first."""
    chosen = select_query(request, *_FILTERS)
    cursor = select_query(request, "cursor")
    providers = (await request.ask(list_providers))["providers"]
    return {
        "page": await request.ask(list_investigations, {}, **chosen, **cursor),
        "chosen": chosen,
        "is_first": not cursor,
        "statuses": list(SessionStatus),
        "personas": list(Persona),
        "providers": [provider["name"] for provider in providers],
    }


async def show_investigation(request: PageRequest) -> Mapping[str, Any]:
    """Return a session with its progress and its report."""
    session = await request.ask(get_session)
    is_under_way = session["status"] in _UNDER_WAY
    return {
        "session": session,
        "is_under_way": is_under_way,
        "phases": list(Phase),
        "latest": await _latest_steps(request, session) if is_under_way else [],
        "place_of": partial(link_to_reference, session["id"]),
        **await _report(request, session),
        # A finished investigation does not change
        **({} if is_under_way else {"live": None}),
    }


async def _latest_steps(
    request: PageRequest, session: Mapping[str, Any]
) -> list[Mapping[str, Any]]:
    """Return the latest steps of the run, newest first."""
    steps = partial(request.ask, list_investigation_steps, request.path)
    before = (await steps(limit="1"))["total"] - _LATEST
    cursor = {"cursor": PageCursor(STEPS, str(before)).encode()} if before > 0 else {}
    return list(reversed((await steps(run=str(session["run"]), **cursor))["steps"]))


async def _report(request: PageRequest, session: Mapping[str, Any]) -> Mapping[str, Any]:
    if session["report"] is None:
        return {"report": None}
    document = await request.ask(get_investigation_report)
    return await asyncio.to_thread(build_report_view, document)


def read_question(form: Form) -> Mapping[str, Any]:
    """Build the request body that starts an investigation."""
    return {"query": form.get("query", ""), **form.given("persona", "provider")}


def _message_in(form: Form) -> Mapping[str, Any]:
    return {"message": form.get("message", "")}


PAGES = (
    ConsolePage(
        path=_ALL,
        view=show_investigations,
        template="investigations.html.j2",
        section="investigations",
    ),
    ConsolePage(
        path=_ONE,
        view=show_investigation,
        template="investigation.html.j2",
        section="investigations",
        is_live=True,
    ),
)
ACTIONS = (
    ConsoleAction(
        path=f"{_ALL}/start",
        handler=start_investigation,
        page=_ALL,
        message="Investigation queued.",
        body=read_question,
        after=_ONE,
    ),
    ConsoleAction(
        path=f"{_ONE}/message",
        handler=send_session_message,
        page=_ONE,
        message="Follow-up question sent. The investigation is queued again.",
        body=_message_in,
    ),
    ConsoleAction(
        path=f"{_ONE}/cancel",
        handler=cancel_session,
        page=_ONE,
        message="Investigation cancelled.",
    ),
)
