"""Endpoints for records that could not be parsed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from sqlalchemy import Connection, Row

from tocsin import incidents
from tocsin.credentials import ConsoleRole
from tocsin.incidents import MappedPush, RetryRefusedError, RetryResult
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
from tocsin.web.routes.push import require_enabled, require_running
from tocsin.web.schemas.quarantine import (
    LIST,
    QuarantinedRecord,
    QuarantineList,
    QuarantineQuery,
    QuarantineRetries,
    QuarantineRetry,
    QuarantineRetryResults,
    RetryOutcome,
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
    row = await _load(call, parse_number(call.path["record_id"]))
    if row is None:
        raise QUARANTINED_RECORD_NOT_FOUND.error()
    require_running(call)
    await require_enabled(call, row.provider)
    try:
        return await call.services.inbox.map_again(row)
    except RetryRefusedError as error:
        raise RECORD_NOT_RETRIED.error(reason=error) from None


async def _load(call: RequestContext, id_: int | None) -> Row[Any] | None:
    if not id_:
        return None
    return await call.services.database.read(incidents.load_quarantined_row, id_)


def retry_quarantined_record(connection: Connection, call: RequestContext) -> Response:
    """Map a quarantined push again, store its incidents, and return their counts.

    You can retry a push that Tocsin rejected as a whole, or an incident that Tocsin rejected from a
    push, if Tocsin stored the request completely. Incidents that may have changed since stay as
    they are. If the record still cannot be parsed, the response is 409, and nothing changes.
    """
    push: MappedPush = call.prepared
    now = call.services.clock.now()
    try:
        result = incidents.store_retry(connection, push, call.principal.name, now)
    except RetryRefusedError as error:
        raise RECORD_NOT_RETRIED.error(reason=error) from None
    change = _describe_retry(push, result)
    return Response(
        {"id": push.record.id, **change.details},
        change=change,
        after_commit=lambda: push.writer.note_stored(result.stored),
    )


def _describe_retry(push: MappedPush, result: RetryResult) -> AuditedChange:
    counts = result.stored.counts
    details: dict[str, Json] = {
        "provider": push.writer.name,
        "received": counts.records,
        "new": counts.new,
        "changed": counts.changed,
        "rejected": counts.rejected,
        "records": sorted(result.records),
    }
    return AuditedChange(target=f"quarantine:{push.record.id}", details=details)


async def map_records(
    call: RequestContext,
) -> Mapping[int, MappedPush | RetryRefusedError | None]:
    """Map several quarantined pushes again, and return the result for each ID, None if unknown."""
    require_running(call)
    body: QuarantineRetries = call.body
    return {id_: await _map(call, id_) for id_ in sorted(set(body.records))}


async def _map(call: RequestContext, id_: int) -> MappedPush | RetryRefusedError | None:
    row = await _load(call, id_)
    if row is None:
        return None
    inbox = call.services.inbox
    if await inbox.find_retry_delay(row.provider) is not None:
        return RetryRefusedError("A person has disabled the provider of the record.")
    try:
        return await inbox.map_again(row)
    except RetryRefusedError as error:
        return error


def retry_quarantined_records(connection: Connection, call: RequestContext) -> Response:
    """Retry several quarantined records, and return the outcome for each.

    Tocsin retries them in the order in which it received them. A record that cannot be retried does
    not affect the others.
    """
    now, name = call.services.clock.now(), call.principal.name
    outcomes: dict[int, MappedPush | RetryRefusedError | None] = dict(call.prepared)
    pushes = [push for push in outcomes.values() if isinstance(push, MappedPush)]
    done: list[tuple[MappedPush, RetryResult]] = []
    marked: set[int] = set()
    for place, push in enumerate(sorted(pushes, key=lambda push: push.order)):
        if push.record.id in marked:  # with another record of the same request
            continue
        moment = now + timedelta(microseconds=place)
        try:
            result = incidents.store_retry(connection, push, name, moment)
        except RetryRefusedError as error:
            outcomes[push.record.id] = error
        else:
            done.append((push, result))
            marked |= result.records

    def note_stored() -> None:
        for push, result in done:
            push.writer.note_stored(result.stored)

    changes = [_describe_retry(push, result) for push, result in done]
    results = [_describe_outcome(id_, outcome) for id_, outcome in outcomes.items()]
    return Response({"results": results}, change=changes, after_commit=note_stored)


def _describe_outcome(id_: int, found: MappedPush | RetryRefusedError | None) -> dict[str, Json]:
    outcome, detail = RetryOutcome.RETRIED, None
    if found is None:
        outcome = RetryOutcome.NOT_FOUND
    elif isinstance(found, RetryRefusedError):
        outcome, detail = RetryOutcome.REFUSED, str(found)
    return {"id": id_, "outcome": outcome, "detail": detail}


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
        path=f"{_QUARANTINE}-retries",
        access=AccessRole.ADMIN,
        role=ConsoleRole.OPERATOR,
        summary="Retry several pushed records that could not be parsed",
        handler=retry_quarantined_records,
        prepare=map_records,
        body=QuarantineRetries,
        response=QuarantineRetryResults,
        action="quarantine.retry",
        problems=(NODE_SUSPENDED,),
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
