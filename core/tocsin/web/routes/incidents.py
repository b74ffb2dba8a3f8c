"""Endpoints for incidents."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple

import orjson
from sqlalchemy import Connection, FromClause, true
from yarl import URL

from tocsin import incidents
from tocsin.clock import isoformat
from tocsin.credentials import Scope, join_key
from tocsin.store import INCIDENT_CHANGE, DriverQuery, require_replayed
from tocsin.store.tables import incident_documents
from tocsin.web.context import (
    ApiServices,
    DirectQuery,
    DirectRequest,
    Endpoint,
    RequestContext,
    Response,
)
from tocsin.web.known_pages import DirectAnswer
from tocsin.web.pagination import (
    ChangeCursor,
    CompositeCursor,
    make_next_link,
    total_fields,
)
from tocsin.web.parsing import parse_query
from tocsin.web.problems import ProblemError
from tocsin.web.record_problems import INCIDENT_NOT_FOUND
from tocsin.web.schemas.incidents import (
    SORTED_CURSORS,
    IncidentItem,
    IncidentList,
    IncidentQuery,
    IncidentTrend,
    TrendQuery,
)

# As many digits as the integers of every database hold
_NUMBER = re.compile(r"[1-9][0-9]{0,17}")
_STATE_WIDTH = 2
"""How many columns form a page's state: the newest change and the total."""


def parse_number(text: str) -> int | None:
    """Return the number in a part of a path; None if no record can have this number."""
    return int(text) if _NUMBER.fullmatch(text) else None


def get_incident(connection: Connection, call: RequestContext) -> Response:
    """Return an incident."""
    number, url = parse_number(call.path["number"]), call.services.public_url
    found = incidents.find_incident(connection, number, public_url=url) if number else None
    if found is None:
        raise INCIDENT_NOT_FOUND.error()
    return Response(found.content, version=f"{found.change:x}")


_find_document = join_key(
    incidents.DOCUMENT_COLUMNS,
    incident_documents,
    incidents.HAS_NUMBER,
    ("number",),
    is_lookup=True,
)


def fetch_incident(request: DirectRequest, services: ApiServices) -> DirectQuery | None:
    """Return the query for the document of an incident."""
    number = parse_number(request.parameter)
    if number is None or request.query:
        return None

    def render(row: Sequence[Any]) -> DirectAnswer | None:
        change, document = row
        if document is None:  # or there is no such incident
            return None
        content = incidents.complete_document(document, number, services.public_url)
        return DirectAnswer(content.encode(), f"{change:x}")

    return DirectQuery(_find_document, (number,), render)


def list_incidents(connection: Connection, call: RequestContext) -> Response:
    """Return one page of incidents."""
    query: IncidentQuery = call.query
    start = query.changed_after or query.cursor
    changes = start if isinstance(start, ChangeCursor) else None
    if start is not None:
        require_replayed(connection, INCIDENT_CHANGE, _find_latest_change(start))
    page = incidents.list_incidents(
        connection,
        public_url=call.services.public_url,
        limit=query.limit,
        severity=query.severity,
        status=query.status,
        since=call.services.clock.now() - query.timespan if query.timespan else None,
        before=changes.before if changes else None,
        after=changes.after if changes else None,
        triage=query.triage,
        content=query.content,
        order=query.sort,
        position=(
            (start.parts[0], int(start.parts[1])) if isinstance(start, CompositeCursor) else None
        ),
    )
    cursors = _Cursors.after(page, start, query.sort)
    content = {"incidents": page.incidents, **total_fields(page), **cursors.members}
    headers = {} if cursors.next is None else {"Link": call.next_link(cursors.next)}
    return Response(content, headers, version=page.version)


def _find_latest_change(cursor: ChangeCursor | CompositeCursor) -> int:
    """Return the latest change that a caller with this cursor has seen or resumes from."""
    if isinstance(cursor, CompositeCursor):
        return int(cursor.parts[2])
    return max(cursor.change, cursor.resume or 0)


class _Cursors(NamedTuple):
    """The cursors that follow a page."""

    next: str | None
    resume: str

    @classmethod
    def after(
        cls,
        page: incidents.IncidentPage | incidents.DocumentPage,
        start: ChangeCursor | CompositeCursor | None,
        order: incidents.IncidentOrder = incidents.IncidentOrder.CHANGED,
    ) -> _Cursors:
        # What changes while pages are turned moves ahead of the first, so that is where to resume.
        resume = page.resume
        if isinstance(start, CompositeCursor):
            resume = int(start.parts[2])
        elif start is not None and start.resume is not None:
            resume = start.resume
        ascending = isinstance(start, ChangeCursor) and start.ascending
        following = None
        if isinstance(page.next, tuple):
            following = CompositeCursor(SORTED_CURSORS[order], (*page.next, resume)).encode()
        elif page.next is not None:
            following = ChangeCursor(page.next, None if ascending else resume).encode()
        return cls(following, ChangeCursor(resume).encode())

    @property
    def members(self) -> dict[str, str | None]:
        """The members of the response."""
        return {"next_cursor": self.next, "resume_cursor": self.resume}


def fetch_incidents(request: DirectRequest, services: ApiServices) -> DirectQuery | None:
    """Return the query for the documents of a page."""
    try:
        plan = _plan_page(request.query, services.public_url)
    except ProblemError:
        return None
    if plan is None:
        return None

    known, target = services.known_pages, request.target

    def render(row: Sequence[Any]) -> DirectAnswer | None:
        answer = _render_page(plan, row, target, services.public_url)
        if answer is not None and plan.state is not None:
            known.add(target, tuple(row[:_STATE_WIDTH]), answer)
        return answer

    query = DirectQuery(plan.query, plan.values, render)
    if plan.state is None or not known.is_stable(target):
        return query
    return DirectQuery(
        plan.state, plan.state_values, lambda row: known.recall(target, tuple(row)), query
    )


def _render_page(
    plan: _PagePlan, row: Sequence[Any], target: str, public_url: str
) -> DirectAnswer | None:
    page = incidents.load_document_page(plan.page, row)
    if page is None:
        return None
    cursors = _Cursors.after(page, plan.start)
    rest = orjson.dumps({**total_fields(page), **cursors.members}).decode()
    content = f'{{"incidents":[{page.documents}],{rest[1:]}'.encode()
    if cursors.next is None:
        return DirectAnswer(content, page.version)
    link = make_next_link(public_url, target, cursors.next)
    return DirectAnswer(content, page.version, {"Link": link})


class _PagePlan(NamedTuple):
    """The parsed query of a page; clients send the same query repeatedly."""

    query: DriverQuery
    values: tuple[Any, ...]
    page: incidents.DocumentPageQuery
    start: ChangeCursor | None
    state: DriverQuery | None
    """The query for the columns that form a page's state, if there are any."""
    state_values: tuple[Any, ...]


@lru_cache(maxsize=256)
def _plan_page(text: str, public_url: str) -> _PagePlan | None:
    """Return the plan for reading a page; None if it needs another method; raises ProblemError."""
    query = parse_query(URL.build(query_string=text, encoded=True), IncidentQuery)
    start = query.changed_after or query.cursor
    wanted = (query.timespan, query.triage, query.content)
    if any(each is not None for each in wanted) or isinstance(start, CompositeCursor):
        return None
    if query.sort is not incidents.IncidentOrder.CHANGED:
        return None
    page = incidents.DocumentPageQuery(
        limit=query.limit,
        severity=query.severity,
        status=query.status,
        before=start.before if start else None,
        after=start.after if start else None,
    )
    parameters = page.list_parameters(public_url)
    driver_query = _join_page(page.source, tuple(parameters))
    wanted_state = {name: parameters[name] for name in ("severity", "status") if name in parameters}
    source = page.state_source
    state = None if source is None else _join_page(source, tuple(wanted_state), is_lookup=True)
    values = tuple(parameters.values())
    return _PagePlan(driver_query, values, page, start, state, tuple(wanted_state.values()))


@cache
def _join_page(
    source: FromClause, names: tuple[str, ...], *, is_lookup: bool = False
) -> DriverQuery:
    return join_key(source.c, source, true(), names, is_lookup=is_lookup)


async def get_incident_trend(call: RequestContext) -> Response:
    """Return the number of incidents by hour and severity. The counts can be a minute old."""
    services, number = call.services, call.query.hours

    async def count() -> list[dict[str, Any]]:
        now = services.clock.now()
        hours = await services.database.read(incidents.count_by_hour, now, number)
        return [
            {
                "start": isoformat(each.start),
                "counts": {str(name): count for name, count in each.counts.items()},
            }
            for each in hours
        ]

    return Response({"hours": await services.shared_results.load(f"trend {number}", count, _AGE)})


_AGE = 60.0
"""Lifetime of a cached trend, in seconds: the query for a busy week takes long."""


ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/api/v1/incidents/trend",
        access=Scope.INCIDENTS_READ,
        summary="Count the incidents in each of the last hours by severity",
        handler=get_incident_trend,
        query=TrendQuery,
        response=IncidentTrend,
    ),
    Endpoint(
        method="GET",
        path="/api/v1/incidents",
        access=Scope.INCIDENTS_READ,
        summary="List incidents, by default most recently changed first",
        handler=list_incidents,
        may_lag=True,
        direct=fetch_incidents,
        query=IncidentQuery,
        response=IncidentList,
    ),
    Endpoint(
        method="GET",
        path="/api/v1/incidents/{number}",
        access=Scope.INCIDENTS_READ,
        summary="Get an incident",
        handler=get_incident,
        is_brief=True,
        direct=fetch_incident,
        response=IncidentItem,
        problems=(INCIDENT_NOT_FOUND,),
    ),
)
