"""Reading investigations: what was found, how, and what stands in the report."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection

from tocsin import investigations, reports
from tocsin.errors import CallerError
from tocsin.fields import any_case
from tocsin.model import Persona, Phase, QueryOutcome, Report, SessionStatus
from tocsin.web.context import RequestContext, Response
from tocsin.web.pagination import PageCursor
from tocsin.web.parsing import QueryModel, ResponseModel
from tocsin.web.routes.fields import (
    Limit,
    TotalRelation,
    cursor_field,
    not_found,
    page_response,
    total_fields,
)
from tocsin.web.routes.sessions import SessionSummary

LIST = "s"
STEPS = "t"
_PREFIX = "ses_"


_Text = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[^\x00]+$")]


class InvestigationQuery(QueryModel):
    """Which investigations, and how many at once."""

    status: Annotated[SessionStatus, any_case(SessionStatus)] | None = Field(
        default=None, description="Only this status, in any case."
    )
    persona: Annotated[Persona, any_case(Persona)] | None = Field(
        default=None, description="Only for this persona, in any case."
    )
    provider: _Text | None = Field(default=None, description="Only those of this provider alone.")
    schedule: _Text | None = Field(
        default=None, description="Only the runs of the schedule of this id."
    )
    limit: Limit = 50
    cursor: cursor_field(LIST) | None = None  # type: ignore[valid-type]


class StepQuery(QueryModel):
    """Which steps, and how many at once."""

    run: Annotated[int, Field(ge=1, le=1_000_000)] | None = Field(
        default=None, description="Only those of this run."
    )
    limit: Limit = 50
    cursor: cursor_field(STEPS) | None = None  # type: ignore[valid-type]


class InvestigationList(ResponseModel):
    """One page of investigations."""

    investigations: list[SessionSummary]
    total: int = Field(description="How many match, counted up to 10,000.")
    total_relation: TotalRelation
    next_cursor: str | None = Field(description="For `cursor`; null on the last page.")


class InvestigationReport(BaseModel):
    """A report as JSON; `docs/reference/report.md` has every member."""

    model_config = ConfigDict(extra="allow")

    title: str
    verdict: str
    confidence: str
    risk_score: float
    summary: list[Any]
    findings: list[Any]
    entities: list[Any]


class InvestigationFindings(ResponseModel):
    """What was found out."""

    findings: list[dict[str, Any]] = Field(description="As in the report.")
    total: int


class InvestigationEntities(ResponseModel):
    """The entities that it met, and what they are taken for."""

    entities: list[dict[str, Any]] = Field(description="As in the report.")
    total: int


class InvestigationTimeline(ResponseModel):
    """What happened when."""

    timeline: list[dict[str, Any]] = Field(description="As in the report.")
    total: int


class SessionStep(ResponseModel):
    """A step of the ledger: a question and what came of it, or a conclusion."""

    number: int = Field(description="What evidence cites: `step:12`.")
    run: int
    phase: Phase
    kind: str = Field(description="The kind of question, or `conclusion`.")
    asked_of: str | None = Field(description="Who was asked, such as `provider:edge`.")
    question: dict[str, Any] | None
    outcome: QueryOutcome | None
    reason: str | None = Field(description="Why it was not answered, or not in full.")
    conclusion: str | None
    evidence: list[str] | None = Field(description="What a conclusion rests on.")
    started_at: datetime
    duration_ms: int


class SessionStepDetail(SessionStep):
    """A step with what was answered."""

    answer: Any = Field(description="Null where it was not answered.")


class SessionSteps(ResponseModel):
    """One page of the ledger."""

    steps: list[SessionStep]
    total: int
    next_cursor: str | None = Field(description="For `cursor`; null on the last page.")


def list_investigations(connection: Connection, call: RequestContext) -> Response:
    """Answer one page of investigations, the newest first."""
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
    """Answer an investigation, without its messages and its report."""
    return Response(_find(connection, call))


def _find(connection: Connection, call: RequestContext) -> dict[str, Any]:
    found = investigations.find_session(
        connection, call.path["session_id"], public_url=call.services.public_url
    )
    if found is None:
        raise not_found("session")
    return found


async def get_investigation_report_markdown(call: RequestContext) -> Response:
    """Answer the report as Markdown."""
    return await _render(call, reports.to_markdown)


async def get_investigation_report_html(call: RequestContext) -> Response:
    """Answer the report as a page that needs nothing else."""
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
    """Answer the report as JSON."""
    return Response(reports.to_json(await _load_report(call)))


async def list_investigation_findings(call: RequestContext) -> Response:
    """Answer what was found out."""
    return await _respond_part(call, "findings")


async def list_investigation_entities(call: RequestContext) -> Response:
    """Answer the entities that it met."""
    return await _respond_part(call, "entities")


async def get_investigation_timeline(call: RequestContext) -> Response:
    """Answer what happened when."""
    return await _respond_part(call, "timeline")


async def _respond_part(call: RequestContext, name: str) -> Response:
    part = reports.to_json(await _load_report(call))[name]
    return Response({name: part, "total": len(part)})


async def _load_report(call: RequestContext) -> Report:
    """Return the last report; CallerError (404) where there is none."""
    session_id = call.path["session_id"]
    report = await call.services.database.read(investigations.load_report, session_id)
    if report is None:
        raise CallerError(404, "There is no report of this identifier, or none yet.")
    return report


def list_investigation_steps(connection: Connection, call: RequestContext) -> Response:
    """Answer one page of the ledger: what was asked of whom, what came of it, what follows."""
    query: StepQuery = call.query
    session_id = _find(connection, call)["id"]
    after = min(query.cursor.number, _HIGHEST) if query.cursor else 0
    page = investigations.list_steps(
        connection, session_id, limit=query.limit, after=after, run=query.run
    )
    following = PageCursor(STEPS, str(page.next)) if page.next else None
    return page_response(call, {"steps": page.steps, "total": page.total}, following)


def get_investigation_step(connection: Connection, call: RequestContext) -> Response:
    """Answer one step of the ledger, with what was answered to it."""
    number = call.path["step"]
    found = None
    if number.isascii() and number.isdigit() and len(number) < _LONGEST_NUMBER:
        found = investigations.load_step(connection, call.path["session_id"], int(number))
    if found is None:
        raise not_found("step")
    return Response(found)


_LONGEST_NUMBER = 10
_HIGHEST = 2**31 - 1  # number that a step can have
