"""Endpoints for the triage of incidents: changes and comments."""

from __future__ import annotations

from sqlalchemy import Connection

from tocsin import incidents
from tocsin.credentials import ConsoleRole, Scope
from tocsin.errors import InvalidInputError
from tocsin.incidents import KEEP, Author, LabelKind, TriageUpdate
from tocsin.model import DispositionSource, Json
from tocsin.store import clean_text
from tocsin.web.context import AuditedChange, Endpoint, RequestContext, Response
from tocsin.web.pagination import PageCursor, page_response
from tocsin.web.record_problems import INCIDENT_CHANGED, INCIDENT_NOT_FOUND, TOO_MANY_COMMENTS
from tocsin.web.routes.incidents import parse_number
from tocsin.web.schemas.triage import (
    COMMENTS,
    BulkTriageChange,
    CommentItem,
    CommentList,
    CommentQuery,
    NewComment,
    TriageChange,
    TriagedIncident,
    TriageOutcome,
    TriageResults,
)

_LONGEST_NAME = 100
_PREFIX = "cmt_"
_MACHINES = frozenset({"key", "client"})
"""Kinds of principals that are programs."""


def update_incident(connection: Connection, call: RequestContext) -> Response:
    """Update an incident's triage and return it.

    Data from the SIEM does not change. With `If-Match`, the update fails if the incident has
    changed since you read it.
    """
    body: TriageChange = call.body
    number, url = _lock(connection, call), call.services.public_url
    author, now = _identify_author(call), call.services.clock.now()
    changed = incidents.update_triage(
        connection, number, _build_update(body), author, now, public_url=url
    )
    found = incidents.find_incident(connection, number, public_url=url)
    assert found is not None  # noqa: S101 - it is locked
    content = {name: found.content[name] for name in TriagedIncident.model_fields}
    headers = {"ETag": call.services.tags.make(f"{found.change:x}")}
    change = AuditedChange(target=f"incident:{number}", details=changed) if changed else None
    return Response(content, headers, change=change)


def update_incidents(connection: Connection, call: RequestContext) -> Response:
    """Apply the same change to the triage of several incidents, and return the outcome for each.

    A refused change does not affect other incidents.
    """
    body: BulkTriageChange = call.body
    author, now = _identify_author(call), call.services.clock.now()
    update, public_url = _build_update(body.change), call.services.public_url
    results: list[dict[str, Json]] = []
    changes: list[AuditedChange] = []
    for number in dict.fromkeys(body.numbers):
        outcome, detail = TriageOutcome.NOT_FOUND, None
        if incidents.lock_incident(connection, number) is not None:
            try:
                changed = incidents.update_triage(
                    connection, number, update, author, now, public_url=public_url
                )
            except InvalidInputError as error:  # before anything is stored
                outcome, detail = TriageOutcome.REFUSED, str(error)
            else:
                outcome = TriageOutcome.UPDATED if changed else TriageOutcome.UNCHANGED
                if changed:
                    changes.append(AuditedChange(target=f"incident:{number}", details=changed))
        results.append({"number": number, "outcome": outcome, "detail": detail})
    return Response({"results": results}, change=changes)


def _build_update(body: TriageChange) -> TriageUpdate:
    given = body.model_fields_set
    return TriageUpdate(
        assignee=body.assignee if "assignee" in given else KEEP,
        acknowledged=KEEP if body.acknowledged is None else body.acknowledged,
        disposition=body.disposition if "disposition" in given else KEEP,
        reason=(body.disposition_reason or None) if "disposition_reason" in given else KEEP,
        source=body.disposition_source,
        added={
            LabelKind.TAG: body.add_tags,
            LabelKind.LINK: [str(number) for number in body.add_links],
            LabelKind.WATCHER: body.add_watchers,
        },
        removed={
            LabelKind.TAG: body.remove_tags,
            LabelKind.LINK: [str(number) for number in body.remove_links],
            LabelKind.WATCHER: body.remove_watchers,
        },
    )


def _lock(connection: Connection, call: RequestContext) -> int:
    """Lock the incident in the path and return its number; raises ProblemError (404, 412)."""
    number = parse_number(call.path["number"])
    change = incidents.lock_incident(connection, number) if number else None
    if number is None or change is None:
        raise INCIDENT_NOT_FOUND.error()
    tag = call.services.tags.make(f"{change:x}")
    if not call.expects(tag):
        raise INCIDENT_CHANGED.error({"ETag": tag}, tag=tag)
    return number


def _identify_author(call: RequestContext) -> Author:
    principal = call.principal
    is_machine = principal.id.partition(":")[0] in _MACHINES
    source = DispositionSource.PLAYBOOK if is_machine else DispositionSource.PERSON
    return Author(clean_text(principal.name, _LONGEST_NAME), principal.id, source)


def create_comment(connection: Connection, call: RequestContext) -> Response:
    """Add a comment to an incident and return it."""
    body: NewComment = call.body
    number, now = _lock(connection, call), call.services.clock.now()
    comment = incidents.add_comment(connection, number, body.text, _identify_author(call), now)
    change = AuditedChange(target=f"incident:{number}", details={"comment": comment["id"]})
    return Response(comment, change=change)


def list_comments(connection: Connection, call: RequestContext) -> Response:
    """Return one page of the comments on an incident, newest first."""
    query: CommentQuery = call.query
    number = parse_number(call.path["number"])
    before = None if query.cursor is None else _PREFIX + query.cursor.before
    page = (
        incidents.list_comments(connection, number, limit=query.limit, before=before)
        if number
        else None
    )
    if page is None:
        raise INCIDENT_NOT_FOUND.error()
    content = {"comments": page.comments, "total": page.total, "total_relation": "eq"}
    following = PageCursor(COMMENTS, page.next.removeprefix(_PREFIX)) if page.next else None
    return page_response(call, content, following)


_INCIDENT = "/api/v1/incidents/{number}"

ENDPOINTS = (
    Endpoint(
        method="PATCH",
        path="/api/v1/incidents",
        access=Scope.INCIDENTS_WRITE,
        summary="Update the triage of several incidents",
        handler=update_incidents,
        role=ConsoleRole.ANALYST,
        body=BulkTriageChange,
        response=TriageResults,
        action="incident.triage",
    ),
    Endpoint(
        method="PATCH",
        path=_INCIDENT,
        access=Scope.INCIDENTS_WRITE,
        summary="Update an incident's triage",
        handler=update_incident,
        role=ConsoleRole.ANALYST,
        body=TriageChange,
        response=TriagedIncident,
        action="incident.triage",
        is_conditional=True,
        problems=(INCIDENT_NOT_FOUND, INCIDENT_CHANGED),
    ),
    Endpoint(
        method="GET",
        path=f"{_INCIDENT}/comments",
        access=Scope.INCIDENTS_READ,
        summary="List the comments on an incident, newest first",
        handler=list_comments,
        query=CommentQuery,
        response=CommentList,
        problems=(INCIDENT_NOT_FOUND,),
    ),
    Endpoint(
        method="POST",
        path=f"{_INCIDENT}/comments",
        access=Scope.INCIDENTS_WRITE,
        summary="Add a comment to an incident",
        handler=create_comment,
        role=ConsoleRole.ANALYST,
        body=NewComment,
        response=CommentItem,
        action="incident.comment",
        idempotent=True,
        is_conditional=True,
        status=201,
        problems=(INCIDENT_NOT_FOUND, INCIDENT_CHANGED, TOO_MANY_COMMENTS),
    ),
)
