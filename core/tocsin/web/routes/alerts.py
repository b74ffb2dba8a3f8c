"""Endpoint for the alerts of an incident, with their records."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import Connection

from tocsin import incidents
from tocsin.credentials import Scope
from tocsin.store.tables import EPOCH
from tocsin.web.context import Endpoint, RequestContext, Response
from tocsin.web.pagination import CompositeCursor, page_response
from tocsin.web.record_problems import INCIDENT_NOT_FOUND
from tocsin.web.routes.incidents import parse_number
from tocsin.web.schemas.alerts import LIST, AlertList, AlertQuery

_UNIT = timedelta(microseconds=1)


def list_alerts(connection: Connection, call: RequestContext) -> Response:
    """Return one page of an incident's alerts, latest first."""
    query: AlertQuery = call.query
    after = None
    if query.cursor is not None:
        moment, external_id = query.cursor.parts
        after = (EPOCH + moment * _UNIT, external_id)
    number = parse_number(call.path["number"])
    page = (
        incidents.list_alerts(connection, number, limit=query.limit, after=after)
        if number
        else None
    )
    if page is None:
        raise INCIDENT_NOT_FOUND.error()
    content = {"alerts": page.alerts, "total": page.total, "total_relation": "eq"}
    following = None
    if page.next is not None:
        at, external_id = page.next
        following = CompositeCursor(LIST, ((at - EPOCH) // _UNIT, external_id))
    return page_response(call, content, following)


ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/api/v1/incidents/{number}/alerts",
        access=Scope.INCIDENTS_READ,
        summary="List an incident's alerts with their records",
        handler=list_alerts,
        query=AlertQuery,
        response=AlertList,
        problems=(INCIDENT_NOT_FOUND,),
    ),
)
