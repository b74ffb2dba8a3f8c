"""Endpoints for deliveries, their attempts and their rendered bodies."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection

from tocsin import delivery
from tocsin.credentials import ConsoleRole
from tocsin.delivery import (
    Destination,
    DestinationState,
    NoSuchDeliveryError,
    NotReplayableError,
    Preview,
    load_destination,
)
from tocsin.model import Event
from tocsin.web.context import AccessRole, AuditedChange, Endpoint, RequestContext, Response
from tocsin.web.pagination import PageCursor, page_response, total_fields
from tocsin.web.record_problems import DELIVERY_NOT_FOUND, DELIVERY_NOT_REPLAYABLE
from tocsin.web.schemas.deliveries import (
    LIST,
    DeliveryBody,
    DeliveryDetail,
    DeliveryList,
    DeliveryQuery,
)

_PREFIX = "dlv_"


def list_deliveries(connection: Connection, call: RequestContext) -> Response:
    """Return one page of deliveries, newest first."""
    query: DeliveryQuery = call.query
    page = delivery.list_deliveries(
        connection,
        delivery.DeliveryFilter(
            destination=query.destination,
            event_type=query.event_type,
            subject=query.subject,
            since=query.since,
            until=query.until,
        ),
        state=query.state,
        limit=query.limit,
        before=_PREFIX + query.cursor.before if query.cursor else None,
    )
    content = {
        "deliveries": page.deliveries,
        **total_fields(page),
    }
    following = PageCursor(LIST, page.next.removeprefix(_PREFIX)) if page.next else None
    return page_response(call, content, following)


def get_delivery(connection: Connection, call: RequestContext) -> Response:
    """Return a delivery with its event and its attempts."""
    return Response(_find(connection, call))


def replay_delivery(connection: Connection, call: RequestContext) -> Response:
    """Queue a delivery to be sent immediately, with a new retry schedule, and return it.

    The delivery can be in any state. The event keeps its ID.
    """
    before = _find(connection, call)
    now = call.services.clock.now()
    try:
        delivery.replay_delivery(connection, before["id"], now)
    except NoSuchDeliveryError:
        raise DELIVERY_NOT_FOUND.error() from None
    except NotReplayableError as error:
        raise DELIVERY_NOT_REPLAYABLE.error(reason=error) from None
    details = {name: before[name] for name in ("destination", "event_id", "state")}
    change = AuditedChange(target=f"delivery:{before['id']}", details=details)
    return Response(_find(connection, call), change=change)


def _find(connection: Connection, call: RequestContext) -> dict[str, Any]:
    found = delivery.load_delivery(connection, call.path["delivery_id"])
    if found is None:
        raise DELIVERY_NOT_FOUND.error()
    return found


_DESTINATION_DELETED = "its destination was deleted"


async def get_delivery_body(call: RequestContext) -> Response:
    """Render the event with the destination's current templates.

    The templates might have changed since the last attempt.
    """
    name, event, destination = await call.services.database.read(_load_for_preview, call)
    if destination is None or destination.state is DestinationState.DELETED:
        shown = Preview(reason=_DESTINATION_DELETED)
    else:
        shown = call.services.destinations.samples.preview(destination, event)
    content = {
        "id": call.path["delivery_id"],
        "destination": name,
        "template": shown.template,
        "parts": [asdict(part) for part in shown.parts],
        "breaches": list(shown.breaches),
        "reason": shown.reason,
    }
    return Response(content)


def _load_for_preview(
    connection: Connection, call: RequestContext
) -> tuple[str, Event, Destination | None]:
    found = delivery.load_delivery(connection, call.path["delivery_id"])
    event = delivery.load_event(connection, call.path["delivery_id"])
    if found is None or event is None:
        raise DELIVERY_NOT_FOUND.error()
    name: str = found["destination"]
    return name, event, load_destination(connection, name)


_DELIVERIES = "/api/admin/deliveries"
_DELIVERY = f"{_DELIVERIES}/{{delivery_id}}"

ENDPOINTS = (
    Endpoint(
        method="GET",
        path=_DELIVERIES,
        access=AccessRole.ADMIN,
        role=ConsoleRole.VIEWER,
        summary="List deliveries, newest first",
        handler=list_deliveries,
        may_lag=True,
        query=DeliveryQuery,
        response=DeliveryList,
    ),
    Endpoint(
        method="GET",
        path=_DELIVERY,
        access=AccessRole.ADMIN,
        role=ConsoleRole.VIEWER,
        summary="Get a delivery with its attempts",
        handler=get_delivery,
        is_brief=True,
        response=DeliveryDetail,
        problems=(DELIVERY_NOT_FOUND,),
    ),
    Endpoint(
        method="GET",
        path=f"{_DELIVERY}/body",
        access=AccessRole.ADMIN,
        role=ConsoleRole.VIEWER,
        summary="Preview a delivery's rendered body",
        handler=get_delivery_body,
        response=DeliveryBody,
        problems=(DELIVERY_NOT_FOUND,),
    ),
    Endpoint(
        method="POST",
        path=f"{_DELIVERY}/replay",
        access=AccessRole.ADMIN,
        summary="Replay a delivery",
        handler=replay_delivery,
        role=ConsoleRole.ANALYST,
        response=DeliveryDetail,
        action="delivery.replay",
        idempotent=True,
        status=202,
        problems=(DELIVERY_NOT_FOUND, DELIVERY_NOT_REPLAYABLE),
    ),
)
