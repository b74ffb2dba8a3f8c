"""Schemas of destinations."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Annotated, Any, ClassVar

import orjson
from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    model_validator,
)

from tocsin.delivery import (
    DestinationState,
    StopReason,
)
from tocsin.fields import any_case
from tocsin.model import EventType, Json
from tocsin.registry import NAME_PATTERN, ManagedBy
from tocsin.web.parsing import BodyModel, QueryModel, ResponseModel
from tocsin.web.schemas.examples import EVENT_ID
from tocsin.web.schemas.fields import Limit, cursor_field

LIST = "d"


def _require_storable(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings; ValueError where they hold what neither database nor answer can."""
    try:
        orjson.dumps(settings)
        text = json.dumps(settings, allow_nan=False)
    except (TypeError, ValueError):
        raise ValueError("a number in it is larger than can be kept") from None
    if r"\u0000" in text.replace(r"\\", ""):
        raise ValueError("it holds the character NUL, which cannot be kept")
    return settings


def _parse_state(text: str) -> DestinationState:
    try:
        return DestinationState(text.lower())
    except ValueError:
        raise ValueError(f"give one of: {', '.join(DestinationState)}") from None


_Settings = Annotated[dict[str, Any], AfterValidator(_require_storable)]


class NewDestination(BodyModel):
    """What a destination is to be."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "name": "soar",
        "plugin": "webhook",
        "settings": {
            "url": "https://soar.example.com/hooks/tocsin",
            "events": ["incident-alert"],
            "secret": "whsec_QUJDQUJDQUJDQUJDQUJDQUJDQUJDQUJDQUJDQUJD",
        },
    }

    name: Annotated[str, StringConstraints(pattern=NAME_PATTERN)]
    plugin: Annotated[str, StringConstraints(min_length=1, max_length=100)] = Field(
        description="The kind of channel: the name of an enabled plugin."
    )
    settings: _Settings = Field(
        default_factory=dict,
        description="The plugin's settings, secrets among them as text; they are never answered.",
    )


class DestinationChange(BodyModel):
    """What is to be different about a destination."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    EXAMPLE: ClassVar[dict[str, Json]] = {"settings": {"min_severity": "High", "events": None}}

    settings: _Settings | None = Field(
        default=None, description="Settings to replace; those that are null return to the default."
    )
    enabled: bool | None = Field(
        default=None, description="Whether anything is sent there; what is not sent is kept."
    )

    @model_validator(mode="after")
    def _not_nothing(self) -> DestinationChange:
        if not self.model_fields_set:
            raise ValueError("give settings, enabled or both")
        return self


class SampleRequest(BodyModel):
    """What a test is to look like."""

    EXAMPLE: ClassVar[dict[str, Json]] = {"event_type": "incident-alert"}

    event_type: Annotated[EventType, any_case(EventType)] = Field(
        default=EventType.INCIDENT_ALERT, description="The kind of event to send."
    )


class DestinationQuery(QueryModel):
    """Which destinations, and how many at once."""

    state: Annotated[DestinationState, BeforeValidator(_parse_state)] | None = Field(
        default=None,
        description="Only those in this state, in any case; by default all that were not deleted.",
    )
    limit: Limit = 50
    cursor: cursor_field(LIST) | None = None  # type: ignore[valid-type]


class DestinationItem(ResponseModel):
    """A destination, without its secrets."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "name": "soar",
        "plugin": "webhook",
        "managed_by": "api",
        "settings": {"url": "https://soar.example.com/hooks/tocsin", "events": ["incident-alert"]},
        "secrets": ["secret"],
        "failures": 0,
        "created_by": "ana",
    }

    name: str
    plugin: str
    managed_by: ManagedBy = Field(description="Where it can be changed.")
    state: DestinationState
    reason: StopReason | None = Field(description="Why it is not active.")
    detail: str | None = Field(description="What its receiver said last before it was stopped.")
    settings: dict[str, Any] = Field(description="As they were written, without the secrets.")
    secrets: list[str] = Field(description="The names of the secrets that are set.")
    failures: int = Field(description="How many attempts in a row have failed.")
    failing_since: datetime | None
    held_until: datetime | None = Field(description="Until when nothing is sent.")
    created_by: str
    created_at: datetime
    updated_at: datetime
    revision: int = Field(description="Counts up with every change that someone makes.")


class DestinationDetail(DestinationItem):
    """A destination, and how many deliveries to it rest."""

    EXAMPLE: ClassVar[dict[str, Json]] = {"waiting": 0, "dead": 0}

    waiting: int = Field(
        description="Deliveries that have not arrived yet, including those on hold."
    )
    dead: int = Field(description="Deliveries that will not be attempted again by themselves.")


class DestinationList(ResponseModel):
    """One page of destinations."""

    destinations: list[DestinationItem]
    total: int
    next_cursor: str | None = Field(description="For `cursor`; null on the last page.")


class SampleOutcome(ResponseModel):
    """What became of a test."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "event_id": EVENT_ID,
        "outcome": "delivered",
        "status": 200,
        "duration_ms": 83,
        "response": "ok",
    }

    event_id: str
    outcome: str = Field(
        description="`delivered`, `later`, `refused`, `misconfigured` or `failed`."
    )
    status: int | None = Field(description="The status that was answered, if any was.")
    duration_ms: int
    reason: str | None = Field(description="Why it was not delivered.")
    response: str = Field(description="The beginning of what was answered.")
    remote_id: str | None = Field(description="What the receiver calls what it made of it.")
    remote_url: str | None = Field(description="Where a person can look at that.")
