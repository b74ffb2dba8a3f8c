"""Schemas of deliveries."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, ClassVar

from pydantic import Field, StringConstraints

from tocsin.delivery import (
    DeliveryState,
)
from tocsin.fields import any_case
from tocsin.model import EventType, Json
from tocsin.web.parsing import QueryModel, ResponseModel
from tocsin.web.schemas.examples import DELIVERY_ID, EVENT_ID, FINISHED, URL
from tocsin.web.schemas.fields import Limit, Timestamp, TotalRelation, cursor_field

LIST = "v"

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

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "duration_ms": 38,
        "outcome": "later",
        "status": 503,
        "reason": "503: busy",
    }

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

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "id": DELIVERY_ID,
        "destination": "soar",
        "reason": "503: busy",
        "due_at": FINISHED,
        "event_id": EVENT_ID,
        "subject": "incident:4711",
    }

    attempts: int = Field(description="How many there were.")


class DeliveryAttempt(TracedAttempt):
    """One attempt at a delivery, with what the receiver answered."""

    EXAMPLE: ClassVar[dict[str, Json]] = {"response": "busy"}

    response: str = Field(description="What the receiver answered, 16 KiB of it at most.")


class DeliveredEvent(ResponseModel):
    """An event as receivers get it."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "data": {
            "incident_number": 4711,
            "title": "Many failed sign-ins, then one that succeeded",
            "severity": "High",
            "status": "New",
            "provider": "cloud",
            "url": f"{URL}/incidents/4711",
        }
    }

    event_type: EventType
    timestamp: datetime
    data: dict[str, Any]


class DeliveryDetail(_DeliveryBase):
    """An event on its way to a destination, with every attempt to bring it there."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "id": DELIVERY_ID,
        "destination": "soar",
        "reason": "503: busy",
        "due_at": FINISHED,
        "event_id": EVENT_ID,
        "subject": "incident:4711",
    }

    event: DeliveredEvent
    attempts: list[DeliveryAttempt]


class DeliveryList(ResponseModel):
    """One page of deliveries."""

    deliveries: list[DeliveryItem]
    total: int = Field(description="How many match, counted up to 10,000.")
    total_relation: TotalRelation
    next_cursor: str | None = Field(description="For `cursor`; null on the last page.")


class RenderedPart(ResponseModel):
    """A part of what is sent, such as the subject of a mail."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "name": "body",
        "content": '{"event_type":"incident-alert","data":{"incident_number":4711}}',
    }

    name: str
    content: str | None = Field(description="As the template renders it.")
    reason: str | None = Field(description="Why it cannot be rendered.")


class DeliveryBody(ResponseModel):
    """What a receiver would be sent for a delivery."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "id": DELIVERY_ID,
        "destination": "soar",
        "template": "envelope",
    }

    id: str
    destination: str
    template: str | None = Field(description="The receiver whose templates render it.")
    parts: list[RenderedPart] = Field(
        description="What the channel can send of it: without what that adds as it sends, such as "
        "a signature or secrets."
    )
    breaches: list[str] = Field(description="In what the parts are not what the receiver takes.")
    reason: str | None = Field(description="Why nothing is rendered.")
