"""Endpoints for deliveries, their attempts and their rendered bodies."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any

from pydantic import Field, StringConstraints
from sqlalchemy import Connection

from tocsin import delivery
from tocsin.delivery import (
    DeliveryState,
    Destination,
    DestinationState,
    NoSuchDeliveryError,
    NotReplayableError,
    Preview,
    load_destination,
)
from tocsin.errors import CallerError
from tocsin.fields import any_case
from tocsin.model import Event, EventType
from tocsin.web.context import AuditedChange, RequestContext, Response
from tocsin.web.pagination import PageCursor
from tocsin.web.parsing import QueryModel, ResponseModel
from tocsin.web.routes.fields import (
    Limit,
    Timestamp,
    TotalRelation,
    cursor_field,
    not_found,
    page_response,
    total_fields,
)

LIST = "v"
_PREFIX = "dlv_"

DestinationName = Annotated[str, StringConstraints(max_length=100, pattern=r"^[^\x00]*$")]
AnyEventType = Annotated[EventType, any_case(EventType)]
Subject = Annotated[str, StringConstraints(max_length=200, pattern=r"^[^\x00]*$")]


class DeliveryQuery(QueryModel):
    """Which deliveries, and how many at once."""

    state: Annotated[DeliveryState, any_case(DeliveryState)] | None = Field(
        default=None,
        description="Only this state, in any case. A pending delivery whose destination is not "
        "active counts as `on_hold`.",
    )
    destination: DestinationName | None = Field(
        default=None, description="Only those to this destination."
    )
    event_type: AnyEventType | None = Field(
        default=None, description="Only those of this kind of event, in any case."
    )
    subject: Subject | None = Field(
        default=None, description="Only those about this, such as `incident:4711`."
    )
    since: Timestamp | None = Field(
        default=None, description="Only those whose event happened then or later."
    )
    until: Timestamp | None = Field(
        default=None, description="Only those whose event happened before."
    )
    limit: Limit = 50
    cursor: cursor_field(LIST) | None = None  # type: ignore[valid-type]


class TracedAttempt(ResponseModel):
    """One attempt at a delivery."""

    number: int
    started_at: datetime
    duration_ms: int
    outcome: str
    status: int | None = Field(description="The HTTP status, where there was one.")
    reason: str | None


class DeliveryStatusItem(ResponseModel):
    """Where a delivery is, and why."""

    id: str
    destination: str
    state: str = Field(
        description="`on_hold` also while its destination is not active.",
        json_schema_extra={"enum": ["pending", "on_hold", "delivered", "dead"]},
    )
    reason: str | None = Field(description="Why it is not there.")
    due_at: datetime | None = Field(description="When it is tried next.")
    remote_id: str | None = Field(description="What the receiver calls what it made of it.")
    remote_url: str | None = Field(description="Where a person can look at that.")
    finished_at: datetime | None


class _DeliveryBase(DeliveryStatusItem):
    """What every delivery tells of itself."""

    event_id: str = Field(description="The same in every attempt and replay.")
    event_type: EventType
    subject: str = Field(description="What the event is about, such as `incident:4711`.")
    timestamp: datetime = Field(description="The event's.")
    created_at: datetime


class DeliveryItem(_DeliveryBase):
    """An event on its way to a destination."""

    attempts: int = Field(description="How many there were.")


class DeliveryAttempt(TracedAttempt):
    """One attempt at a delivery, with what the receiver answered."""

    response: str = Field(description="What the receiver answered, 16 KiB of it at most.")


class DeliveredEvent(ResponseModel):
    """An event as receivers get it."""

    event_type: EventType
    timestamp: datetime
    data: dict[str, Any]


class DeliveryDetail(_DeliveryBase):
    """An event on its way to a destination, with every attempt to bring it there."""

    event: DeliveredEvent
    attempts: list[DeliveryAttempt]


class DeliveryList(ResponseModel):
    """One page of deliveries."""

    deliveries: list[DeliveryItem]
    total: int = Field(description="How many match, counted up to 10,000.")
    total_relation: TotalRelation
    next_cursor: str | None = Field(description="For `cursor`; null on the last page.")


def list_deliveries(connection: Connection, call: RequestContext) -> Response:
    """Answer one page of deliveries, the newest first."""
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
    """Answer one delivery, with its event and every attempt."""
    return Response(_find(connection, call))


def replay_delivery(connection: Connection, call: RequestContext) -> Response:
    """Make a delivery due now, at the beginning of its schedule, and answer it.

    Whatever its state; one that waits for its next attempt waits no longer. The event keeps its id.
    """
    before = _find(connection, call)
    now = call.services.clock.now()
    try:
        delivery.replay_delivery(connection, before["id"], now)
    except NoSuchDeliveryError:
        raise not_found("delivery") from None
    except NotReplayableError as error:
        raise CallerError(409, f"The delivery cannot be replayed: {error}.") from None
    details = {name: before[name] for name in ("destination", "event_id", "state")}
    change = AuditedChange(target=f"delivery:{before['id']}", details=details)
    return Response(_find(connection, call), change=change)


def _find(connection: Connection, call: RequestContext) -> dict[str, Any]:
    found = delivery.load_delivery(connection, call.path["delivery_id"])
    if found is None:
        raise not_found("delivery")
    return found


_DESTINATION_DELETED = "its destination was deleted"


class RenderedPart(ResponseModel):
    """A part of what is sent, such as the subject of a mail."""

    name: str
    content: str | None = Field(description="As the template renders it.")
    reason: str | None = Field(description="Why it cannot be rendered.")


class DeliveryBody(ResponseModel):
    """What a receiver would be sent for a delivery."""

    id: str
    destination: str
    template: str | None = Field(description="The receiver whose templates render it.")
    parts: list[RenderedPart] = Field(
        description="What the channel can send of it: without what that adds as it sends, such as "
        "a signature or secrets."
    )
    breaches: list[str] = Field(description="In what the parts are not what the receiver takes.")
    reason: str | None = Field(description="Why nothing is rendered.")


async def get_delivery_body(call: RequestContext) -> Response:
    """Answer what the destination's templates make of the event now.

    Both may have changed since an attempt.
    """
    name, event, destination = await call.services.database.read(_load_for_preview, call)
    if destination is None or destination.state is DestinationState.DELETED:
        shown = Preview(reason=_DESTINATION_DELETED)
    else:
        shown = call.services.samples.preview(destination, event)
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
        raise not_found("delivery")
    name: str = found["destination"]
    return name, event, load_destination(connection, name)
