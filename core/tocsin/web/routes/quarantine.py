"""Endpoints for records that could not be parsed."""

from __future__ import annotations

from sqlalchemy import Connection

from tocsin import incidents
from tocsin.credentials import ConsoleRole
from tocsin.incidents import MappedPush, RetryRefusedError
from tocsin.model import Json
from tocsin.web.context import AccessRole, AuditedChange, Endpoint, RequestContext, Response
from tocsin.web.pagination import PageCursor, page_response, total_fields
from tocsin.web.record_problems import (
    NODE_SUSPENDED,
    PROVIDER_STOPPED,
    QUARANTINED_RECORD_NOT_FOUND,
    RECORD_NOT_RETRIED,
)
from tocsin.web.routes.incidents import parse_number
from tocsin.web.routes.push import require_accepting
from tocsin.web.schemas.quarantine import (
    LIST,
    QuarantinedRecord,
    QuarantineList,
    QuarantineQuery,
    QuarantineRetry,
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


async def map_record(call: RequestContext) -> MappedPush:
    """Map a quarantined push again; raises ProblemError if it cannot be retried."""
    number = parse_number(call.path["record_id"])
    load = incidents.load_quarantined_row
    row = await call.services.database.read(load, number) if number else None
    if row is None:
        raise QUARANTINED_RECORD_NOT_FOUND.error()
    await require_accepting(call, row.provider)
    try:
        return await call.services.inbox.map_again(row)
    except RetryRefusedError as error:
        raise RECORD_NOT_RETRIED.error(reason=error) from None


def retry_quarantined_record(connection: Connection, call: RequestContext) -> Response:
    """Map a quarantined push again, store its incidents, and return their counts.

    You can retry pushes that Tocsin rejected as a whole, if their content is complete. Incidents
    that may have changed since stay as they are. If the push still cannot be parsed, the response
    is 409, and nothing changes.
    """
    push: MappedPush = call.prepared
    now = call.services.clock.now()
    try:
        stored = incidents.store_retry(connection, push, call.principal.name, now)
    except RetryRefusedError as error:
        raise RECORD_NOT_RETRIED.error(reason=error) from None
    counts = stored.counts
    details: dict[str, Json] = {
        "provider": push.writer.name,
        "received": counts.records,
        "new": counts.new,
        "changed": counts.changed,
        "rejected": counts.rejected,
    }
    change = AuditedChange(target=f"quarantine:{push.record}", details=details)
    return Response(
        {"id": push.record, **details},
        change=change,
        after_commit=lambda: push.writer.note_stored(stored),
    )


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
    Endpoint(
        method="POST",
        path=f"{_QUARANTINE}/{{record_id}}/retry",
        access=AccessRole.ADMIN,
        role=ConsoleRole.OPERATOR,
        summary="Retry a pushed record that could not be parsed",
        handler=retry_quarantined_record,
        prepare=map_record,
        response=QuarantineRetry,
        action="quarantine.retry",
        problems=(
            QUARANTINED_RECORD_NOT_FOUND,
            RECORD_NOT_RETRIED,
            NODE_SUSPENDED,
            PROVIDER_STOPPED,
        ),
    ),
)
