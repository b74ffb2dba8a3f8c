"""Endpoint for remote objects that do not match their incidents."""

from __future__ import annotations

from sqlalchemy import Connection

from tocsin import delivery
from tocsin.credentials import Scope
from tocsin.web.context import Endpoint, RequestContext, Response
from tocsin.web.pagination import CompositeCursor, page_response
from tocsin.web.schemas.status_mismatches import LIST, StatusMismatchList, StatusMismatchQuery


def list_status_mismatches(connection: Connection, call: RequestContext) -> Response:
    """Return one page of remote objects whose status does not match their incident's."""
    query: StatusMismatchQuery = call.query
    after = query.cursor.parts if query.cursor else None
    rows = delivery.list_mismatches(
        connection,
        limit=query.limit + 1,
        kind=query.mismatch,
        destination=query.destination,
        after=None if after is None else (after[0], after[1]),
    )
    shown = rows[: query.limit]
    following = None
    if len(rows) > len(shown):
        last = shown[-1]
        following = CompositeCursor(LIST, (last["incident_number"], last["destination"]))
    return page_response(call, {"mismatches": shown}, following)


ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/api/v1/status-mismatches",
        access=Scope.INCIDENTS_READ,
        summary="List tickets and other objects whose status does not match their incident's",
        handler=list_status_mismatches,
        query=StatusMismatchQuery,
        response=StatusMismatchList,
    ),
)
