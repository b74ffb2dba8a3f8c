"""Endpoints for records that could not be parsed."""

from __future__ import annotations

from sqlalchemy import Connection

from tocsin import incidents
from tocsin.credentials import ConsoleRole
from tocsin.web.context import AccessRole, Endpoint, RequestContext, Response
from tocsin.web.pagination import PageCursor, page_response, total_fields
from tocsin.web.record_problems import QUARANTINED_RECORD_NOT_FOUND
from tocsin.web.routes.incidents import parse_number
from tocsin.web.schemas.quarantine import (
    LIST,
    QuarantinedRecord,
    QuarantineList,
    QuarantineQuery,
)


def list_quarantine(connection: Connection, call: RequestContext) -> Response:
    """Return one page of quarantined records, newest first."""
    query: QuarantineQuery = call.query
    before = query.cursor.number if query.cursor else None
    page = incidents.list_quarantine(connection, query.provider, query.limit, before=before)
    content = {"records": page.records, **total_fields(page)}
    return page_response(call, content, PageCursor(LIST, str(page.next)) if page.next else None)


def get_quarantined_record(connection: Connection, call: RequestContext) -> Response:
    """Return a quarantined record with its content."""
    number = parse_number(call.path["record_id"])
    found = incidents.load_quarantined(connection, number) if number else None
    if found is None:
        raise QUARANTINED_RECORD_NOT_FOUND.error()
    return Response(found)


_QUARANTINE = "/api/admin/quarantine"

ENDPOINTS = (
    Endpoint(
        method="GET",
        path=_QUARANTINE,
        access=AccessRole.ADMIN,
        role=ConsoleRole.VIEWER,
        summary="List records that could not be parsed, newest first",
        handler=list_quarantine,
        may_lag=True,
        query=QuarantineQuery,
        response=QuarantineList,
    ),
    Endpoint(
        method="GET",
        path=f"{_QUARANTINE}/{{record_id}}",
        access=AccessRole.ADMIN,
        role=ConsoleRole.VIEWER,
        summary="Get a record that could not be parsed, with its content",
        handler=get_quarantined_record,
        is_brief=True,
        response=QuarantinedRecord,
        problems=(QUARANTINED_RECORD_NOT_FOUND,),
    ),
)
