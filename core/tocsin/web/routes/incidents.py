"""Reading incidents."""

from __future__ import annotations

import re

from sqlalchemy import Connection

from tocsin import incidents
from tocsin.credentials import Scope
from tocsin.web.context import Endpoint, RequestContext, Response
from tocsin.web.pagination import ChangeCursor, total_fields
from tocsin.web.record_problems import INCIDENT_NOT_FOUND
from tocsin.web.schemas.incidents import IncidentItem, IncidentList, IncidentQuery

# As many digits as the integers of every database hold
_NUMBER = re.compile(r"[1-9][0-9]{0,17}")


def parse_number(text: str) -> int | None:
    """Return the number in a part of a path, None if no record can have it."""
    return int(text) if _NUMBER.fullmatch(text) else None


def get_incident(connection: Connection, call: RequestContext) -> Response:
    """Return an incident."""
    number, url = parse_number(call.path["number"]), call.services.public_url
    found = incidents.get_incident(connection, number, public_url=url) if number else None
    if found is None:
        raise INCIDENT_NOT_FOUND.error()
    return Response(found)


def list_incidents(connection: Connection, call: RequestContext) -> Response:
    """Return one page of incidents."""
    query: IncidentQuery = call.query
    start = query.changed_after or query.cursor
    ascending = start is not None and start.ascending
    page = incidents.list_incidents(
        connection,
        public_url=call.services.public_url,
        limit=query.limit,
        severity=query.severity,
        status=query.status,
        since=call.services.clock.now() - query.timespan if query.timespan else None,
        before=start.change if start and not ascending else None,
        after=start.change if start and ascending else None,
    )
    # What changes while pages are turned moves ahead of the first, so that is where to resume.
    resume = start.resume if start and start.resume is not None else page.resume
    content = {
        "incidents": page.incidents,
        **total_fields(page),
        "next_cursor": None,
        "resume_cursor": ChangeCursor(resume).encode(),
    }
    if page.next is None:
        return Response(content)
    following = ChangeCursor(page.next, None if ascending else resume).encode()
    return Response(content | {"next_cursor": following}, {"Link": call.next_link(following)})


ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/api/v1/incidents",
        access=Scope.INCIDENTS_READ,
        summary="List incidents, most recently changed first",
        handler=list_incidents,
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
        response=IncidentItem,
        problems=(INCIDENT_NOT_FOUND,),
    ),
)
