"""Reading the audit log."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field, StringConstraints
from sqlalchemy import Connection

from tocsin import audit
from tocsin.web.context import RequestContext, Response
from tocsin.web.pagination import PageCursor
from tocsin.web.parsing import QueryModel, ResponseModel
from tocsin.web.routes.fields import (
    Limit,
    Timestamp,
    TotalRelation,
    cursor_field,
    page_response,
    total_fields,
)

LIST = "u"

# As long as an entry holds them; PostgreSQL's text holds every character but this one
_Exact = Annotated[str, StringConstraints(max_length=500, pattern=r"^[^\x00]*$")]


class AuditQuery(QueryModel):
    """Which entries, and how many at once."""

    action: _Exact | None = Field(default=None, description="Only this action.")
    actor: _Exact | None = Field(default=None, description="Only this actor, such as `admin:ana`.")
    target: _Exact | None = Field(default=None, description="Only what was done to this.")
    since: Timestamp | None = Field(default=None, description="Only what was done from here on.")
    until: Timestamp | None = Field(default=None, description="Only what was done before.")
    limit: Limit = 50
    cursor: cursor_field(LIST) | None = None  # type: ignore[valid-type]


class AuditEntry(ResponseModel):
    """Something that was done, or a count of what was refused."""

    id: int
    at: datetime
    actor: str
    action: str
    target: str | None
    address: str
    request_id: str
    count: int
    details: dict[str, Any] = Field(
        description="What was changed; `unreadable` holds the text of what is no JSON object."
    )
    position: int | None = Field(description="Its place in the chain; null until it is sealed.")
    seal: str | None = Field(description="A keyed hash over it and the seal before.")


class AuditList(ResponseModel):
    """One page of the audit log."""

    entries: list[AuditEntry]
    total: int = Field(description="How many match, counted up to 10,000.")
    total_relation: TotalRelation
    next_cursor: str | None = Field(description="For `cursor`; null on the last page.")


def list_audit_entries(connection: Connection, call: RequestContext) -> Response:
    """Answer one page of the audit log, the newest entry first."""
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
