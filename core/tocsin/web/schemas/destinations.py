"""Schemas of destinations."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Annotated, Any, ClassVar, Self

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
from tocsin.web.schemas.stops import CurrentStop, StopChange

LIST = "d"


def _require_storable(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings; raises ValueError if they cannot be stored as JSON."""
    try:
        orjson.dumps(settings)
        text = json.dumps(settings, allow_nan=False)
    except (TypeError, ValueError):
        raise ValueError("it contains a number that is too large") from None
    if r"\u0000" in text.replace(r"\\", ""):
        raise ValueError("it contains a NUL character, which cannot be stored")
    return settings


def _parse_state(text: str) -> DestinationState:
    try:
        return DestinationState(text.lower())
    except ValueError:
        raise ValueError(f"use one of: {', '.join(DestinationState)}") from None


_Settings = Annotated[dict[str, Any], AfterValidator(_require_storable)]


class NewDestination(BodyModel):
    """A new destination."""

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
        description="Name of the enabled plugin that provides the channel."
    )
    settings: _Settings = Field(
        default_factory=dict,
        description="Settings of the plugin, with secrets as text. The API never returns secrets.",
    )


class DestinationChange(StopChange):
    """Changes to a destination."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    EXAMPLE: ClassVar[dict[str, Json]] = {"settings": {"min_severity": "High", "events": None}}

    settings: _Settings | None = Field(
        default=None, description="Settings to replace; null resets a setting to its default."
    )
    enabled: bool | None = Field(
        default=None,
        description="Whether to send deliveries. If false, Tocsin keeps unsent deliveries.",
    )

    @model_validator(mode="after")
    def _not_nothing(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("provide settings, enabled or both")
        return self


class SampleRequest(BodyModel):
    """A test event."""

    EXAMPLE: ClassVar[dict[str, Json]] = {"event_type": "incident-alert"}

    event_type: Annotated[EventType, any_case(EventType)] = Field(
        default=EventType.INCIDENT_ALERT, description="Type of the event to send."
    )


class SettingsTest(SampleRequest):
    """A test event with settings that are not stored."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "plugin": "webhook",
        "destination": None,
        "settings": NewDestination.EXAMPLE["settings"],
        "event_type": "incident-alert",
    }

    plugin: Annotated[str, StringConstraints(min_length=1, max_length=100)] | None = Field(
        default=None, description="Channel of a new destination."
    )
    destination: Annotated[str, StringConstraints(pattern=NAME_PATTERN)] | None = Field(
        default=None, description="Destination whose settings are replaced for the test."
    )
    settings: _Settings = Field(
        default_factory=dict,
        description="Settings, as in the request that creates or updates a destination.",
    )

    @model_validator(mode="after")
    def _require_one(self) -> Self:
        if (self.plugin is None) is (self.destination is None):
            raise ValueError("provide plugin or destination")
        return self


class DestinationQuery(QueryModel):
    """Query parameters for listing destinations."""

    state: Annotated[DestinationState, BeforeValidator(_parse_state)] | None = Field(
        default=None,
        description="Filter by state, case-insensitive; by default, all except deleted "
        "destinations.",
    )
    limit: Limit = 50
    cursor: cursor_field(LIST) | None = None  # type: ignore[valid-type]


class DestinationItem(ResponseModel):
    """A destination without its secrets."""

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
    managed_by: ManagedBy = Field(description="Where the object is configured.")
    state: DestinationState
    reason: StopReason | None = Field(description="Why the destination is not active.")
    detail: str | None = Field(
        description="The receiver's last response. If a person disabled the destination: who, "
        "until when and why."
    )
    stop: CurrentStop | None = Field(description="Current emergency stop, if any.")
    settings: dict[str, Any] = Field(description="Settings as written, without secrets.")
    secrets: list[str] = Field(description="Names of the secrets that are set.")
    failures: int = Field(description="Number of consecutive failures.")
    failing_since: datetime | None
    held_until: datetime | None = Field(description="Sending is paused until this time.")
    created_by: str
    created_at: datetime
    updated_at: datetime
    revision: int = Field(description="Revision number, incremented by each change.")


class DestinationDetail(DestinationItem):
    """A destination with the numbers of its pending and dead deliveries."""

    EXAMPLE: ClassVar[dict[str, Json]] = {"waiting": 0, "dead": 0}

    waiting: int = Field(description="Number of pending deliveries, including deliveries on hold.")
    dead: int = Field(description="Number of dead deliveries, which Tocsin no longer attempts.")


class ResumedDestination(DestinationItem):
    """A destination that was resumed."""

    EXAMPLE: ClassVar[dict[str, Json]] = {"released": 3}

    released: int = Field(description="Number of deliveries that are now due.")


class DestinationList(ResponseModel):
    """One page of destinations."""

    destinations: list[DestinationItem]
    total: int
    next_cursor: str | None = Field(description="Next `cursor`; null on the last page.")


class SampleOutcome(ResponseModel):
    """Outcome of a test event."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "event_id": EVENT_ID,
        "outcome": "delivered",
        "status": 200,
        "duration_ms": 83,
        "response": "ok",
    }

    event_id: str
    outcome: str = Field(
        description="`delivered`, `later` (Tocsin would retry a delivery), `refused`, "
        "`misconfigured` or `failed`."
    )
    status: int | None = Field(description="HTTP status code, if any.")
    duration_ms: int
    reason: str | None = Field(description="Why the event was not delivered.")
    response: str = Field(description="Beginning of the receiver's response.")
    remote_id: str | None = Field(description="ID of the object in the receiver.")
    remote_url: str | None = Field(description="Link to the object in the receiver.")
