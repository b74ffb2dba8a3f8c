"""Endpoints for investigations, their reports and the steps in their ledgers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy import Connection

from tocsin import investigations, reports
from tocsin.credentials import Scope
from tocsin.model import Report
from tocsin.web.context import Endpoint, RequestContext, Response
from tocsin.web.pagination import PageCursor, page_response, total_fields
from tocsin.web.record_problems import REPORT_NOT_FOUND, SESSION_NOT_FOUND, STEP_NOT_FOUND
from tocsin.web.schemas.investigations import (
    LIST,
    STEPS,
    InvestigationEntities,
    InvestigationFindings,
    InvestigationList,
    InvestigationQuery,
    InvestigationReport,
    InvestigationTimeline,
    SessionStepDetail,
    SessionSteps,
    StepQuery,
)
from tocsin.web.schemas.sessions import SessionSummary

_PREFIX = "ses_"


def list_investigations(connection: Connection, call: RequestContext) -> Response:
    """Return one page of investigations, newest first."""
    query: InvestigationQuery = call.query
    page = investigations.list_sessions(
        connection,
        public_url=call.services.public_url,
        limit=query.limit,
        before=_PREFIX + query.cursor.before if query.cursor else None,
        status=query.status,
        persona=query.persona,
        provider=query.provider,
        schedule_id=query.schedule,
    )
    content = {
        "investigations": page.sessions,
        **total_fields(page),
    }
    following = PageCursor(LIST, page.next.removeprefix(_PREFIX)) if page.next else None
    return page_response(call, content, following)


def get_investigation(connection: Connection, call: RequestContext) -> Response:
    """Return an investigation without its messages or report."""
    return Response(_find(connection, call))


def _find(connection: Connection, call: RequestContext) -> dict[str, Any]:
    found = investigations.find_session(
        connection, call.path["session_id"], public_url=call.services.public_url
    )
    if found is None:
        raise SESSION_NOT_FOUND.error()
    return found


async def get_investigation_report_markdown(call: RequestContext) -> Response:
    """Return the report as Markdown."""
    return await _render(call, reports.to_markdown)


async def get_investigation_report_html(call: RequestContext) -> Response:
    """Return the report as a self-contained HTML page."""
    answer = await _render(call, reports.to_html)
    return Response(answer.content, {"Content-Security-Policy": _POLICY})


# A page cannot say of itself that it is not to be framed
_POLICY = f"{reports.CONTENT_SECURITY_POLICY}; frame-ancestors 'none'"


async def _render(
    call: RequestContext, render: Callable[[Report, Mapping[str, str]], str]
) -> Response:
    report, session_id = await _load_report(call), call.path["session_id"]
    meanings = await call.services.database.read(investigations.describe_steps, session_id)
    text = await asyncio.to_thread(render, report, meanings)
    return Response(text.encode())


async def get_investigation_report(call: RequestContext) -> Response:
    """Return the report as JSON."""
    return Response(reports.to_json(await _load_report(call)))


async def list_investigation_findings(call: RequestContext) -> Response:
    """Return the report's findings."""
    return await _respond_part(call, "findings")


async def list_investigation_entities(call: RequestContext) -> Response:
    """Return the report's entities and how they were assessed."""
    return await _respond_part(call, "entities")


async def get_investigation_timeline(call: RequestContext) -> Response:
    """Return the report's timeline."""
    return await _respond_part(call, "timeline")


async def _respond_part(call: RequestContext, name: str) -> Response:
    part = reports.to_json(await _load_report(call))[name]
    return Response({name: part, "total": len(part)})


async def _load_report(call: RequestContext) -> Report:
    """Return the last report; raises ProblemError (404) if there is none."""
    session_id = call.path["session_id"]
    report = await call.services.database.read(investigations.load_report, session_id)
    if report is None:
        raise REPORT_NOT_FOUND.error()
    return report


def list_investigation_steps(connection: Connection, call: RequestContext) -> Response:
    """Return one page of steps: queries with their outcomes, and conclusions."""
    query: StepQuery = call.query
    session_id = _find(connection, call)["id"]
    after = min(query.cursor.number, _HIGHEST) if query.cursor else 0
    page = investigations.list_steps(
        connection, session_id, limit=query.limit, after=after, run=query.run
    )
    following = PageCursor(STEPS, str(page.next)) if page.next else None
    return page_response(call, {"steps": page.steps, "total": page.total}, following)


def get_investigation_step(connection: Connection, call: RequestContext) -> Response:
    """Return one step with its answer."""
    number = call.path["step"]
    found = None
    if number.isascii() and number.isdigit() and len(number) < _LONGEST_NUMBER:
        found = investigations.load_step(connection, call.path["session_id"], int(number))
    if found is None:
        raise STEP_NOT_FOUND.error()
    return Response(found)


_LONGEST_NUMBER = 10

_HIGHEST = 2**31 - 1  # number that a step can have


_INVESTIGATIONS = "/api/v1/investigations"
_INVESTIGATION = f"{_INVESTIGATIONS}/{{session_id}}"

ENDPOINTS = (
    Endpoint(
        method="GET",
        path=_INVESTIGATIONS,
        access=Scope.INVESTIGATIONS_READ,
        summary="List investigations, newest first",
        handler=list_investigations,
        may_lag=True,
        query=InvestigationQuery,
        response=InvestigationList,
    ),
    Endpoint(
        method="GET",
        path=_INVESTIGATION,
        access=Scope.INVESTIGATIONS_READ,
        summary="Get an investigation",
        handler=get_investigation,
        response=SessionSummary,
        problems=(SESSION_NOT_FOUND,),
    ),
    Endpoint(
        method="GET",
        path=f"{_INVESTIGATION}/report.json",
        access=Scope.INVESTIGATIONS_READ,
        summary="Get the report as JSON",
        handler=get_investigation_report,
        response=InvestigationReport,
        problems=(REPORT_NOT_FOUND,),
    ),
    Endpoint(
        method="GET",
        path=f"{_INVESTIGATION}/report.md",
        access=Scope.INVESTIGATIONS_READ,
        summary="Get the report as Markdown",
        handler=get_investigation_report_markdown,
        media_type="text/markdown",
        problems=(REPORT_NOT_FOUND,),
    ),
    Endpoint(
        method="GET",
        path=f"{_INVESTIGATION}/report.html",
        access=Scope.INVESTIGATIONS_READ,
        summary="Get the report as a self-contained HTML page",
        handler=get_investigation_report_html,
        media_type="text/html",
        problems=(REPORT_NOT_FOUND,),
    ),
    Endpoint(
        method="GET",
        path=f"{_INVESTIGATION}/findings",
        access=Scope.INVESTIGATIONS_READ,
        summary="List an investigation's findings",
        handler=list_investigation_findings,
        response=InvestigationFindings,
        problems=(REPORT_NOT_FOUND,),
    ),
    Endpoint(
        method="GET",
        path=f"{_INVESTIGATION}/entities",
        access=Scope.INVESTIGATIONS_READ,
        summary="List an investigation's entities and how it assessed them",
        handler=list_investigation_entities,
        response=InvestigationEntities,
        problems=(REPORT_NOT_FOUND,),
    ),
    Endpoint(
        method="GET",
        path=f"{_INVESTIGATION}/timeline",
        access=Scope.INVESTIGATIONS_READ,
        summary="Get an investigation's timeline",
        handler=get_investigation_timeline,
        response=InvestigationTimeline,
        problems=(REPORT_NOT_FOUND,),
    ),
    Endpoint(
        method="GET",
        path=f"{_INVESTIGATION}/steps",
        access=Scope.INVESTIGATIONS_READ,
        summary="List an investigation's steps: queries, sources and outcomes",
        handler=list_investigation_steps,
        query=StepQuery,
        response=SessionSteps,
        problems=(SESSION_NOT_FOUND,),
    ),
    Endpoint(
        method="GET",
        path=f"{_INVESTIGATION}/steps/{{step}}",
        access=Scope.INVESTIGATIONS_READ,
        summary="Get a step of an investigation with its answer",
        handler=get_investigation_step,
        response=SessionStepDetail,
        problems=(STEP_NOT_FOUND,),
    ),
)
