"""Endpoints for replays of many deliveries, and for the rerouting of events."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection

from tocsin import delivery
from tocsin.clock import isoformat, isoformat_or_none
from tocsin.credentials import ConsoleRole
from tocsin.delivery import ReplayExtent
from tocsin.model import Json
from tocsin.web.context import AccessRole, AuditedChange, Endpoint, RequestContext, Response
from tocsin.web.pagination import PageCursor, page_response
from tocsin.web.parsing import invalid_member
from tocsin.web.record_problems import REPLAY_NOT_FOUND
from tocsin.web.schemas.replays import (
    LIST,
    NewReplay,
    NewReroute,
    Replay,
    ReplayList,
    ReplayQuery,
    Reroute,
)

_PREFIX = "rpl_"


async def measure_replay(call: RequestContext) -> ReplayExtent:
    """Return the extent of a replay, counted outside the transaction because it takes long."""
    body: NewReplay = call.body
    wanted = delivery.DeliveryFilter(
        destination=body.destination,
        event_type=body.event_type,
        since=body.since,
        until=body.until,
    )
    try:
        return await call.services.database.read(delivery.measure_replay, body.state, wanted)
    except delivery.NoSuchDestinationError as error:
        raise invalid_member("destination", str(error)) from None


def create_replay(connection: Connection, call: RequestContext) -> Response:
    """Create a replay of all deliveries that match now, and return it."""
    now = call.services.clock.now()
    made = delivery.create_replay(connection, call.prepared, call.principal.name, now)
    details = {**made["filter"], "total": made["total"]}
    return Response(made, change=AuditedChange(target=f"replay:{made['id']}", details=details))


def list_replays(connection: Connection, call: RequestContext) -> Response:
    """Return one page of replays, newest first."""
    query: ReplayQuery = call.query
    before = _PREFIX + query.cursor.before if query.cursor else None
    page = delivery.list_replays(connection, limit=query.limit, before=before)
    content = {"replays": page.replays, "total": page.total}
    following = PageCursor(LIST, page.next.removeprefix(_PREFIX)) if page.next else None
    return page_response(call, content, following)


def get_replay(connection: Connection, call: RequestContext) -> Response:
    """Return a replay with its progress."""
    return Response(_find(connection, call))


def cancel_replay(connection: Connection, call: RequestContext) -> Response:
    """Cancel a replay and return it. A finished replay does not change."""
    id_, now = call.path["replay_id"], call.services.clock.now()
    cancelled = delivery.cancel_replay(connection, id_, now)
    found = _find(connection, call)
    change = AuditedChange(target=f"replay:{id_}", details={"replayed": found["replayed"]})
    return Response(found, change=change if cancelled else None)


def _find(connection: Connection, call: RequestContext) -> dict[str, Any]:
    found = delivery.load_replay(connection, call.path["replay_id"])
    if found is None:
        raise REPLAY_NOT_FOUND.error()
    return found


async def count_unmatched(call: RequestContext) -> int:
    """Return the number of events for a dry run, counted outside the transaction."""
    body: NewReroute = call.body
    if not body.dry_run:
        return 0
    until = body.until or call.services.clock.now()
    return await call.services.database.read(delivery.count_unmatched_events, body.since, until)


def reroute_events(connection: Connection, call: RequestContext) -> Response:
    """Reroute events that matched no destination to the destinations that match now.

    Tocsin skips events that already have a delivery, so you can repeat the request. One request
    routes at most 10,000 events. To continue, send `next_since` as `since` in the next request.
    """
    body: NewReroute = call.body
    if body.dry_run:
        return Response({"events": call.prepared, "next_since": None})
    until = body.until or call.services.clock.now()
    batch = delivery.reroute_events(connection, body.since, until)
    content: dict[str, Json] = {
        "events": batch.count,
        "next_since": isoformat_or_none(batch.next_since),
    }
    period = {"since": isoformat(body.since), "until": isoformat(batch.next_since or until)}
    return Response(content, change=AuditedChange(target="", details=period | content))


_REPLAYS = "/api/admin/replays"
_REPLAY = f"{_REPLAYS}/{{replay_id}}"

ENDPOINTS = (
    Endpoint(
        method="POST",
        path=_REPLAYS,
        access=AccessRole.ADMIN,
        summary="Replay many deliveries in the background",
        handler=create_replay,
        role=ConsoleRole.ANALYST,
        prepare=measure_replay,
        body=NewReplay,
        response=Replay,
        action="deliveries.replay",
        idempotent=True,
        status=202,
    ),
    Endpoint(
        method="POST",
        path="/api/admin/events/reroute",
        access=AccessRole.ADMIN,
        summary="Reroute events that matched no destination",
        handler=reroute_events,
        role=ConsoleRole.OPERATOR,
        prepare=count_unmatched,
        body=NewReroute,
        response=Reroute,
        action="events.reroute",
        idempotent=True,
    ),
    Endpoint(
        method="GET",
        path=_REPLAYS,
        access=AccessRole.ADMIN,
        role=ConsoleRole.VIEWER,
        summary="List replays, newest first",
        handler=list_replays,
        query=ReplayQuery,
        response=ReplayList,
    ),
    Endpoint(
        method="GET",
        path=_REPLAY,
        access=AccessRole.ADMIN,
        role=ConsoleRole.VIEWER,
        summary="Get a replay and its progress",
        handler=get_replay,
        is_brief=True,
        response=Replay,
        problems=(REPLAY_NOT_FOUND,),
    ),
    Endpoint(
        method="POST",
        path=f"{_REPLAY}/cancel",
        access=AccessRole.ADMIN,
        summary="Cancel a replay",
        handler=cancel_replay,
        role=ConsoleRole.ANALYST,
        response=Replay,
        action="replay.cancel",
        problems=(REPLAY_NOT_FOUND,),
    ),
)
