"""Schemas of replays and of rerouting."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from tocsin.delivery import REPLAYABLE_STATES, DeliveryState, ReplayState
from tocsin.fields import any_case
from tocsin.model import DeliveryType, Json
from tocsin.web.parsing import BodyModel, QueryModel, ResponseModel
from tocsin.web.schemas.deliveries import DestinationName
from tocsin.web.schemas.examples import FINISHED, REPLAY_ID
from tocsin.web.schemas.fields import Limit, Timestamp, cursor_field

LIST = "r"


Replayable = Annotated[
    DeliveryState,
    BeforeValidator(
        lambda value: DeliveryState.parse_replayable(value) if isinstance(value, str) else value
    ),
    WithJsonSchema({"type": "string", "enum": list(REPLAYABLE_STATES)}),
]
"""A state that bulk replays accept, case-insensitive."""


class NewReplay(BodyModel):
    """A request to replay deliveries."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "state": "dead",
        "destination": "soar",
        "since": "2026-11-20T22:00:00Z",
    }

    state: Replayable = Field(
        default=DeliveryState.DEAD,
        description="Filter by state. `on_hold` selects deliveries that wait for a configuration "
        "fix, not deliveries to inactive destinations.",
    )
    destination: DestinationName | None = Field(default=None, description="Filter by destination.")
    event_type: Annotated[DeliveryType, any_case(DeliveryType)] | None = Field(
        default=None, description="Filter by event type."
    )
    since: Timestamp | None = Field(default=None, description="Only events at or after this time.")
    until: Timestamp | None = Field(default=None, description="Only events before this time.")


class ReplayFilter(BaseModel):
    """Filter of a replay, from the request."""

    model_config = ConfigDict(extra="forbid")

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "state": "dead",
        "destination": "soar",
        "since": "2026-11-20T22:00:00.000Z",
    }

    state: Replayable
    destination: str | None
    event_type: DeliveryType | None
    since: datetime | None
    until: datetime | None


class Replay(ResponseModel):
    """A replay of many deliveries, with its progress."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "id": REPLAY_ID,
        "total": 1250,
        "replayed": 500,
        "created_by": "ana",
        "created_at": FINISHED,
        "updated_at": FINISHED,
    }

    id: str
    state: ReplayState
    filter: ReplayFilter
    total: int = Field(description="Number of deliveries that matched when the replay was created.")
    replayed: int = Field(description="Number of deliveries queued so far.")
    created_by: str
    created_at: datetime
    updated_at: datetime
    finished_at: datetime | None


class ReplayQuery(QueryModel):
    """Page of replays."""

    limit: Limit = 50
    cursor: cursor_field(LIST) | None = None  # type: ignore[valid-type]


class ReplayList(ResponseModel):
    """One page of replays."""

    replays: list[Replay]
    total: int
    next_cursor: str | None = Field(description="Next `cursor`; null on the last page.")


class NewReroute(BodyModel):
    """A request to reroute events."""

    EXAMPLE: ClassVar[dict[str, Json]] = {"since": "2026-11-20T22:00:00Z"}

    since: Timestamp = Field(description="Only events at or after this time.")
    until: Timestamp | None = Field(
        default=None, description="Only events before this time; by default, now."
    )
    dry_run: bool = Field(
        default=False,
        description="If true, Tocsin only counts the events and does not route them.",
    )


class Reroute(ResponseModel):
    """Result of rerouting events."""

    EXAMPLE: ClassVar[dict[str, Json]] = {"events": 2624}

    events: int = Field(description="Number of rerouted events.")
    next_since: datetime | None = Field(
        description="Value to send as `since` in the next request; null if no events remain."
    )
