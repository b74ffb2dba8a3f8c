"""Reading deliveries, and sending one again."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field, StringConstraints
from sqlalchemy import Connection

from tocsin import delivery
from tocsin.delivery import DeliveryState, NoSuchDeliveryError, NotReplayableError
from tocsin.errors import CallerError
from tocsin.fields import any_case
from tocsin.model import EventType
from tocsin.web.calls import Answer, Call, Change
from tocsin.web.cursor import Place
from tocsin.web.parsing import Query, Shown
from tocsin.web.routes.moments import Moment
from tocsin.web.routes.records import Limit, TotalRelation, no_such, place_of, total_of, with_next

LIST = "v"
_PREFIX = "dlv_"

DestinationName = Annotated[str, StringConstraints(max_length=100, pattern=r"^[^\x00]*$")]
AnyEventType = Annotated[EventType, any_case(EventType)]
Subject = Annotated[str, StringConstraints(max_length=200, pattern=r"^[^\x00]*$")]


class DeliveryQuery(Query):
    """Which deliveries, and how many at once."""

    state: Annotated[DeliveryState, any_case(DeliveryState)] | None = Field(
        default=None,
        description="Only this state, in any case; what waits for a destination that is not "
        "active is `parked`.",
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
    since: Moment | None = Field(
        default=None, description="Only those whose event happened then or later."
    )
    until: Moment | None = Field(
        default=None, description="Only those whose event happened before."
    )
    limit: Limit = 50
    cursor: place_of(LIST) | None = None  # type: ignore[valid-type]


class TracedAttempt(Shown):
    """One attempt at a delivery."""

    number: int
    started_at: datetime
    duration_ms: int
    outcome: str
    status: int | None = Field(description="The HTTP status, where there was one.")
    reason: str | None


class Whereabouts(Shown):
    """Where a delivery is, and why."""

    id: str
    destination: str
    state: str = Field(
        description="`parked` also while its destination is not active.",
        json_schema_extra={"enum": ["pending", "parked", "delivered", "dead"]},
    )
    reason: str | None = Field(description="Why it is not there.")
    due_at: datetime | None = Field(description="When it is tried next.")
    remote_id: str | None = Field(description="What the receiver calls what it made of it.")
    remote_url: str | None = Field(description="Where a person can look at that.")
    finished_at: datetime | None


class _Delivery(Whereabouts):
    """What every delivery tells of itself."""

    event_id: str = Field(description="The same in every attempt and replay.")
    event_type: EventType
    subject: str = Field(description="What the event is about, such as `incident:4711`.")
    timestamp: datetime = Field(description="The event's.")
    created_at: datetime


class DeliveryItem(_Delivery):
    """An event on its way to a destination."""

    attempts: int = Field(description="How many there were.")


class DeliveryAttempt(TracedAttempt):
    """One attempt at a delivery, with what the receiver answered."""

    response: str = Field(description="What the receiver answered, 16 KiB of it at most.")


class Envelope(Shown):
    """An event as receivers get it."""

    event_type: EventType
    timestamp: datetime
    data: dict[str, Any]


class DeliveryDetail(_Delivery):
    """An event on its way to a destination, with every attempt to bring it there."""

    event: Envelope
    attempts: list[DeliveryAttempt]


class DeliveryList(Shown):
    """One page of deliveries."""

    deliveries: list[DeliveryItem]
    total: int = Field(description="How many match, counted up to 10,000.")
    total_relation: TotalRelation
    next_cursor: str | None = Field(description="For `cursor`; null on the last page.")


def list_deliveries(connection: Connection, call: Call) -> Answer:
    """Answer one page of deliveries, the newest first."""
    query: DeliveryQuery = call.query
    page = delivery.list_deliveries(
        connection,
        delivery.Filter(
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
        **total_of(page),
    }
    following = Place(LIST, page.next.removeprefix(_PREFIX)) if page.next else None
    return with_next(call, content, following)


def get_delivery(connection: Connection, call: Call) -> Answer:
    """Answer one delivery, with its event and every attempt."""
    return Answer(_find(connection, call))


def replay_delivery(connection: Connection, call: Call) -> Answer:
    """Make a delivery due now, at the beginning of its schedule, and answer it.

    Whatever its state; one that waits for its next attempt waits no longer. The event keeps its id.
    """
    before = _find(connection, call)
    now = call.services.clock.now()
    try:
        delivery.replay_delivery(connection, before["id"], now)
    except NoSuchDeliveryError:
        raise no_such("delivery") from None
    except NotReplayableError as error:
        raise CallerError(409, f"The delivery cannot be replayed: {error}.") from None
    details = {name: before[name] for name in ("destination", "event_id", "state")}
    change = Change(target=f"delivery:{before['id']}", details=details)
    return Answer(_find(connection, call), change=change)


def _find(connection: Connection, call: Call) -> dict[str, Any]:
    found = delivery.load_delivery(connection, call.path["delivery_id"])
    if found is None:
        raise no_such("delivery")
    return found
