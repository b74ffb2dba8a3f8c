"""Endpoint for the audit log."""

from __future__ import annotations

from sqlalchemy import Connection

from tocsin import audit
from tocsin.credentials import ConsoleRole
from tocsin.web.context import AccessRole, Endpoint, RequestContext, Response
from tocsin.web.pagination import PageCursor, page_response, total_fields
from tocsin.web.schemas.audit import LIST, AuditList, AuditQuery


def list_audit_entries(connection: Connection, call: RequestContext) -> Response:
    """Return one page of the audit log, newest entry first."""
    query: AuditQuery = call.query
    page = audit.list_entries(
        connection,
        limit=query.limit,
        before=query.cursor.number if query.cursor else None,
        action=query.action,
        actor=query.actor,
        target=query.target,
        since=query.since,
        until=query.until,
    )
    content = {
        "entries": page.entries,
        **total_fields(page),
    }
    return page_response(call, content, PageCursor(LIST, str(page.next)) if page.next else None)


ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/api/admin/audit",
        access=AccessRole.ADMIN,
        role=ConsoleRole.AUDITOR,
        summary="List audit entries and counts of rejected requests, newest first",
        handler=list_audit_entries,
        may_lag=True,
        query=AuditQuery,
        response=AuditList,
    ),
)
