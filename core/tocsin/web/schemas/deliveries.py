"""Schemas of deliveries."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, ClassVar

from pydantic import Field, StringConstraints

from tocsin.delivery import (
    DeliveryState,
)
from tocsin.fields import any_case
from tocsin.model import DeliveryType, Json, Severity
from tocsin.web.parsing import QueryModel, ResponseModel
from tocsin.web.schemas.examples import DELIVERY_ID, EVENT_ID, FINISHED, URL
from tocsin.web.schemas.fields import Limit, Timestamp, TotalRelation, cursor_field

LIST = "v"

DestinationName = Annotated[str, StringConstraints(max_length=100, pattern=r"^[^\x00]*$")]

AnyEventType = Annotated[DeliveryType, any_case(DeliveryType)]

Subject = Annotated[str, StringConstraints(max_length=200, pattern=r"^[^\x00]*$")]


class DeliveryQuery(QueryModel):
    """Query parameters for listing deliveries."""

    state: Annotated[DeliveryState, any_case(DeliveryState)] | None = Field(
        default=None,
        description="Filter by state, case-insensitive. A pending delivery whose destination "
        "is not active counts as `on_hold`.",
    )
    destination: DestinationName | None = Field(default=None, description="Filter by destination.")
    event_type: AnyEventType | None = Field(
        default=None, description="Filter by event type, case-insensitive."
    )
    subject: Subject | None = Field(
        default=None, description="Filter by subject, such as `incident:4711`."
    )
    since: Timestamp | None = Field(default=None, description="Only events at or after this time.")
    until: Timestamp | None = Field(default=None, description="Only events before this time.")
    limit: Limit = 50
    cursor: cursor_field(LIST) | None = None  # type: ignore[valid-type]


class TracedAttempt(ResponseModel):
    """A delivery attempt."""

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
    status: int | None = Field(description="HTTP status code, if any.")
    reason: str | None


class DeliveryStatusItem(ResponseModel):
    """Status of a delivery."""

    id: str
    destination: str
    state: str = Field(
        description="`on_hold` includes deliveries whose destination is not active.",
        json_schema_extra={"enum": [state.value for state in DeliveryState]},
    )
    reason: str | None = Field(description="Why the event has not been delivered.")
    due_at: datetime | None = Field(description="Time of the next attempt, if any.")
    remote_id: str | None = Field(description="ID of the object in the receiver.")
    remote_url: str | None = Field(description="Link to the object in the receiver.")
    finished_at: datetime | None


class _DeliveryBase(DeliveryStatusItem):
    """Members of every delivery."""

    event_id: str = Field(description="ID of the event; the same in every attempt.")
    event_type: DeliveryType
    subject: str = Field(description="Subject of the event, such as `incident:4711`.")
    title: str | None = Field(description="Title of the incident or investigation in the event.")
    severity: Severity | None = Field(description="Severity of the incident in the event.")
    timestamp: datetime = Field(description="Time of the event.")
    created_at: datetime


class DeliveryItem(_DeliveryBase):
    """The delivery of an event to a destination."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "id": DELIVERY_ID,
        "destination": "soar",
        "reason": "503: busy",
        "due_at": FINISHED,
        "event_id": EVENT_ID,
        "subject": "incident:4711",
        "title": "Many failed sign-ins, then one that succeeded",
        "severity": "High",
    }

    attempts: int = Field(description="Number of attempts.")


class DeliveryAttempt(TracedAttempt):
    """A delivery attempt with the receiver's response."""

    EXAMPLE: ClassVar[dict[str, Json]] = {"response": "busy"}

    response: str = Field(description="The receiver's response, at most 16 KiB.")


class DeliveredEvent(ResponseModel):
    """An event in the format for receivers."""

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

    event_type: DeliveryType
    timestamp: datetime
    data: dict[str, Any]


class DeliveryDetail(_DeliveryBase):
    """The delivery of an event to a destination, with its attempts."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "id": DELIVERY_ID,
        "destination": "soar",
        "reason": "503: busy",
        "due_at": FINISHED,
        "event_id": EVENT_ID,
        "subject": "incident:4711",
        "title": "Many failed sign-ins, then one that succeeded",
        "severity": "High",
    }

    event: DeliveredEvent
    attempts: list[DeliveryAttempt]


class DeliveryList(ResponseModel):
    """One page of deliveries."""

    deliveries: list[DeliveryItem]
    total: int = Field(description="Number of matches, counted up to 10,000.")
    total_relation: TotalRelation
    next_cursor: str | None = Field(description="Next `cursor`; null on the last page.")


class RenderedPart(ResponseModel):
    """A rendered part of a delivery, such as the subject of an email."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "name": "body",
        "content": '{"event_type":"incident-alert","data":{"incident_number":4711}}',
    }

    name: str
    content: str | None = Field(description="Output of the template.")
    reason: str | None = Field(description="Why the template could not be rendered.")


class DeliveryBody(ResponseModel):
    """Preview of a delivery's body."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "id": DELIVERY_ID,
        "destination": "soar",
        "template": "envelope",
    }

    id: str
    destination: str
    template: str | None = Field(description="Receiver whose templates were used.")
    parts: list[RenderedPart] = Field(
        description="Rendered parts, without what the channel adds, such as a signature or secrets."
    )
    breaches: list[str] = Field(description="How the event violates the receiver's contract.")
    reason: str | None = Field(description="Why Tocsin did not render the event.")
