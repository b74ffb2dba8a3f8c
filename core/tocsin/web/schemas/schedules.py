"""Schemas of schedules."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    StringConstraints,
    create_model,
    model_validator,
)

from tocsin.fields import Duration, any_case
from tocsin.investigations import FailureCause
from tocsin.model import Json, Persona
from tocsin.recurrence import Overlap, ScheduleDefinition
from tocsin.registry import NAME_PATTERN, ManagedBy
from tocsin.schedules import (
    DisabledReason,
    RunState,
    ScheduleStatus,
    Trigger,
)
from tocsin.web.parsing import BodyModel, QueryModel, ResponseModel
from tocsin.web.schemas.examples import RUN_ID, SCHEDULE_ID, SESSION_ID, URL
from tocsin.web.schemas.fields import Limit, TotalRelation, composite_cursor_field, cursor_field

LIST = "h"

RUNS = "n"

_FURTHEST = timedelta(days=366)


def _require_near(value: timedelta) -> timedelta:
    if value > _FURTHEST:
        raise ValueError("use at most 366d")
    return value


class NewSchedule(BodyModel, ScheduleDefinition):
    """A new schedule."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "query": "Sign-ins from new countries in the last 24 hours",
        "persona": "threat-hunter",
        "cron": "0 2 * * *",
        "timezone": "Europe/Berlin",
        "jitter": "PT5M",
        "tags": ["night", "sign-ins"],
        "name": "nightly-hunt",
    }

    name: Annotated[str, StringConstraints(pattern=NAME_PATTERN)]


def _optional_fields() -> dict[str, Any]:
    """Return the members of a definition, all optional."""
    fields = ScheduleDefinition.model_fields.items()
    return {
        name: (
            field.rebuild_annotation() | None,
            Field(default=None, description=field.description),
        )
        for name, field in fields
    }


class _ScheduleChangeBase(BodyModel):
    """Changes to a schedule; null resets a member to its default."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    EXAMPLE: ClassVar[dict[str, Json]] = {"interval": "PT15M", "jitter": None}

    @model_validator(mode="after")
    def _not_nothing(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("provide at least one member")
        return self


if TYPE_CHECKING:
    ScheduleChange = _ScheduleChangeBase
else:
    ScheduleChange = create_model(
        "ScheduleChange",
        __base__=_ScheduleChangeBase,
        __doc__=_ScheduleChangeBase.__doc__,
        **_optional_fields(),
    )


class ScheduleQuery(QueryModel):
    """Query parameters for listing schedules."""

    status: Annotated[ScheduleStatus, any_case(ScheduleStatus)] | None = Field(
        default=None,
        description="Filter by status, case-insensitive; by default, all except deleted schedules.",
    )
    tag: Annotated[str, Field(min_length=1, max_length=50, pattern=r"^[^\x00]+$")] | None = Field(
        default=None, description="Filter by tag."
    )
    name: Annotated[str, StringConstraints(pattern=NAME_PATTERN)] | None = Field(
        default=None, description="Only the schedule with this name."
    )
    limit: Limit = 50
    cursor: composite_cursor_field(LIST, str, str) | None = None  # type: ignore[valid-type]


class RunQuery(QueryModel):
    """Query parameters for listing runs."""

    state: Annotated[RunState, any_case(RunState)] | None = Field(
        default=None, description="Filter by state, case-insensitive."
    )
    limit: Limit = 50
    cursor: cursor_field(RUNS) | None = None  # type: ignore[valid-type]


class UpcomingQuery(QueryModel):
    """Period of upcoming runs."""

    within: Annotated[Duration, AfterValidator(_require_near)] = Field(
        default=timedelta(days=1),
        description="How far to look ahead: an ISO 8601 duration, at most P366D.",
    )
    limit: Limit = 50


class ScheduleItem(ResponseModel):
    """A schedule."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "id": SCHEDULE_ID,
        "name": "nightly-hunt",
        "managed_by": "api",
        "query": "Sign-ins from new countries in the last 24 hours",
        "persona": "threat-hunter",
        "cron": "0 2 * * *",
        "timezone": "Europe/Berlin",
        "jitter": "PT5M",
        "timeout": "PT10M",
        "misfire_grace": "PT1H",
        "tags": ["night", "sign-ins"],
        "consecutive_failures": 0,
        "last_status": "completed",
        "last_run_at": "2026-11-21T01:02:17.481Z",
        "next_run_at": "2026-11-22T01:03:44.902Z",
        "created_by": "ana",
        "url": f"{URL}/schedules/{SCHEDULE_ID}",
    }

    id: str
    name: str
    managed_by: ManagedBy = Field(description="Where the object is configured.")
    query: str
    persona: Persona
    provider: str | None
    cron: str | None
    interval: str | None = Field(description="Time between runs: an ISO 8601 duration.")
    timezone: str
    jitter: str | None = Field(
        description="Maximum random delay before each run: an ISO 8601 duration."
    )
    starts_at: datetime | None
    ends_at: datetime | None
    timeout: str = Field(description="How long a run can take: an ISO 8601 duration.")
    misfire_grace: str = Field(description="How late a run can start: an ISO 8601 duration.")
    overlap: Overlap
    failure_limit: int | None
    tags: list[str]
    status: ScheduleStatus
    disabled_reason: DisabledReason | None
    consecutive_failures: int
    last_status: RunState | None = Field(description="State of the last run.")
    last_error: str | None = Field(
        description="Error of the last finished run; null after a completed run."
    )
    last_run_at: datetime | None
    next_run_at: datetime | None
    revision: int = Field(description="Revision number, incremented by each change.")
    created_by: str
    created_at: datetime
    updated_at: datetime
    url: str = Field(description="URL of the page in the console.")


class ScheduleDetail(ScheduleItem):
    """A schedule with its next fire times."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "upcoming": [
            "2026-11-22T01:03:44.902Z",
            "2026-11-23T01:00:52.317Z",
            "2026-11-24T01:04:08.660Z",
        ]
    }

    upcoming: list[datetime] = Field(
        description="Times of the next three runs, with jitter, if the schedule is active."
    )


class ScheduleList(ResponseModel):
    """One page of schedules."""

    schedules: list[ScheduleItem]
    total: int
    next_cursor: str | None = Field(description="Next `cursor`; null on the last page.")


class ScheduleRun(ResponseModel):
    """A run of a schedule: for a fire time, for several missed fire times, or on request."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "id": RUN_ID,
        "schedule_id": SCHEDULE_ID,
        "state": "completed",
        "session_id": SESSION_ID,
        "fire_at": "2026-11-21T01:00:00.000Z",
        "due_at": "2026-11-21T01:02:17.463Z",
        "started_at": "2026-11-21T01:02:17.481Z",
        "ended_at": "2026-11-21T01:02:49.120Z",
        "duration_ms": 31_639,
        "created_by": "schedules",
    }

    id: str
    schedule_id: str
    trigger: Trigger
    state: RunState
    count: int = Field(
        description="Number of scheduled times that this run represents, counted up to 101."
    )
    session_id: str | None = Field(description="Session of the run.")
    cause: FailureCause | None = Field(description="Cause of the failure.")
    reason: str | None = Field(description="Why the run failed, was skipped or was missed.")
    fire_at: datetime = Field(description="Scheduled time.")
    due_at: datetime = Field(description="Scheduled time plus jitter.")
    until: datetime | None = Field(
        description="Last fire time, without jitter, if the run represents several fire times."
    )
    started_at: datetime | None
    ended_at: datetime | None
    duration_ms: int | None
    created_by: str


class RunList(ResponseModel):
    """One page of runs."""

    runs: list[ScheduleRun]
    total: int = Field(description="Number of matches, counted up to 10,000.")
    total_relation: TotalRelation
    next_cursor: str | None = Field(description="Next `cursor`; null on the last page.")


class UpcomingRun(ResponseModel):
    """An upcoming run."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "due_at": "2026-11-22T01:03:44.902Z",
        "schedule_id": SCHEDULE_ID,
        "schedule_name": "nightly-hunt",
    }

    due_at: datetime
    schedule_id: str
    schedule_name: str


class UpcomingList(ResponseModel):
    """Upcoming runs, soonest first."""

    EXAMPLE: ClassVar[dict[str, Json]] = {"until": "2026-11-22T05:33:01.123Z"}

    upcoming: list[UpcomingRun]
    until: datetime = Field(description="Time up to which the list is complete.")
    truncated: bool = Field(description="Whether there are more than `limit` runs in the period.")
