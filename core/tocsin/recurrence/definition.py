"""Schedule definition, for `plugins.toml` and for the REST API."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Annotated, Any, ClassVar
from zoneinfo import ZoneInfo, available_timezones

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    ValidationInfo,
    WithJsonSchema,
    field_serializer,
    field_validator,
)
from pydantic_core import PydanticCustomError

from tocsin.durations import format_duration, format_iso_duration
from tocsin.fields import Duration, QueryText, WholeNumber, any_case
from tocsin.model import Persona, Vocabulary
from tocsin.recurrence.cron import MAX_LENGTH, CronError, find_shortest_interval, parse_cron
from tocsin.validation import suggest_nearest

_MOST_TAGS = 20
_YEARS = (1970, 9000)


class Overlap(Vocabulary):
    """Policy for a run that is due while the previous run is in progress."""

    SKIP = "skip"
    """Skip the run and record that."""
    QUEUE = "queue"
    """Run it after the previous one."""


def _validate_cron(value: str) -> str:
    try:
        parse_cron(value)
    except CronError as error:
        raise PydanticCustomError("cron", "{reason}", {"reason": str(error)}) from None
    return value


CronText = Annotated[str, Field(max_length=MAX_LENGTH), AfterValidator(_validate_cron)]


@cache
def _load_zones() -> set[str]:
    """Return the names of all time zones; cached, since reading them is slow."""
    return available_timezones() - {"localtime", "Factory"}  # placeholders


def _validate_zone(value: str) -> str:
    if value not in _load_zones():
        hint = suggest_nearest(value, sorted(_load_zones()))
        message = f"use a time zone from the IANA database, such as 'Europe/Berlin'{hint}"
        raise PydanticCustomError("zone", "{reason}", {"reason": message})
    ZoneInfo(value)
    return value


def _duration_between(shortest: timedelta, longest: timedelta) -> AfterValidator:
    """Validate whole seconds within limits."""

    def judge(value: timedelta) -> timedelta:
        if not shortest <= value <= longest or value.microseconds:
            bounds = {"from": format_duration(shortest), "to": format_duration(longest)}
            raise PydanticCustomError("duration", "use whole seconds, from {from} to {to}", bounds)
        return value

    return AfterValidator(judge)


def _validate_moment(value: datetime) -> datetime:
    if not _YEARS[0] <= value.year <= _YEARS[1]:
        raise PydanticCustomError(
            "moment", "use a year from {from} to {to}", {"from": _YEARS[0], "to": _YEARS[1]}
        )
    return value.astimezone(UTC)


def _validate_tag(value: str) -> str:
    if not _TAG.fullmatch(value):
        message = (
            "use 1 to 50 letters, digits, dots, colons, - and _, starting with a letter or digit"
        )
        raise PydanticCustomError("tag", "{reason}", {"reason": message})
    return value


_TAG = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_.:-]{0,49}$")
_SECOND, _DAY = timedelta(seconds=1), timedelta(days=1)
_Strict = Annotated[Duration, Field(strict=True)]  # a plain number has no unit
Interval = Annotated[_Strict, _duration_between(10 * _SECOND, 366 * _DAY)]
Moment = Annotated[AwareDatetime, AfterValidator(_validate_moment)]
Tag = Annotated[
    str,
    AfterValidator(_validate_tag),
    WithJsonSchema({"type": "string", "pattern": _TAG.pattern}),
]


class ScheduleDefinition(BaseModel):
    """Query and timing of a recurring investigation."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True)

    query: QueryText = Field(
        description="Question in plain language. It can contain entities, time ranges, terms "
        "and incident numbers."
    )
    persona: Annotated[Persona, any_case(Persona)] = Field(
        default=Persona.ANALYST,
        description="Audience of the report. Also determines how deep the investigation goes.",
    )
    provider: Annotated[str, Field(min_length=1, max_length=100)] | None = Field(
        default=None, description="Provider to query. By default, runs query all providers."
    )
    cron: CronText | None = Field(
        default=None,
        description="Cron expression (minute, hour, day of month, month, weekday) or a "
        "nickname such as `@daily`. Set either `cron` or `interval`.",
    )
    interval: Interval | None = Field(
        default=None,
        validate_default=True,
        description="Interval between runs, from 10 seconds to 366 days. Set either `cron` or "
        "`interval`.",
    )
    timezone: Annotated[str, Field(max_length=100), AfterValidator(_validate_zone)] = Field(
        default="UTC", description="Time zone for `cron`, such as `Europe/Berlin`."
    )
    jitter: Annotated[_Strict, _duration_between(_SECOND, _DAY)] | None = Field(
        default=None,
        description="Maximum random delay before each run. By default, there is no delay.",
    )
    starts_at: Moment | None = Field(
        default=None, description="When the schedule starts. Intervals are counted from this time."
    )
    ends_at: Moment | None = Field(default=None, description="When the schedule ends.")
    timeout: Annotated[_Strict, _duration_between(10 * _SECOND, _DAY)] = Field(
        default=timedelta(minutes=10),
        description="How long a run can take. A longer run fails.",
    )
    misfire_grace: Annotated[_Strict, _duration_between(10 * _SECOND, 7 * _DAY)] = Field(
        default=timedelta(hours=1),
        description="How late a run can start. A run that has not started by then is `missed`.",
    )
    overlap: Annotated[Overlap, any_case(Overlap)] = Field(
        default=Overlap.SKIP,
        description="What happens to a run that is due while the previous run is in progress: "
        "`skip` drops the new run, and `queue` starts it when the previous run ends.",
    )
    failure_limit: Annotated[int, Field(ge=1, le=1_000), WholeNumber] | None = Field(
        default=None,
        description="Number of consecutive failures after which Tocsin disables the schedule. "
        "By default, this is the value of `TOCSIN_SCHEDULE_FAILURE_LIMIT`.",
    )
    tags: Annotated[tuple[Tag, ...], Field(max_length=_MOST_TAGS, strict=False)] = Field(
        default=(), description="Labels for filtering."
    )

    @field_serializer("interval", "jitter", "timeout", "misfire_grace", when_used="json")
    def _duration(self, value: timedelta | None) -> str | None:
        return None if value is None else format_iso_duration(value)

    @field_validator("interval")
    @classmethod
    def _one_of_both(cls, value: timedelta | None, info: ValidationInfo) -> timedelta | None:
        # Invalid fields are missing in the data
        if "cron" in info.data and (info.data["cron"] is None) == (value is None):
            both = "both are given" if value is not None else "neither is given"
            message = f"set either `cron` or `interval`; {both}"
            raise PydanticCustomError("either", "{reason}", {"reason": message})
        return value

    @field_validator("jitter")
    @classmethod
    def _shorter_than_a_pause(
        cls, value: timedelta | None, info: ValidationInfo
    ) -> timedelta | None:
        given = info.data
        if value is None or not {"cron", "interval", "timezone"} <= given.keys():
            return value
        pause = given["interval"] or find_shortest_interval(
            parse_cron(given["cron"]), given["timezone"]
        )
        if value >= pause:
            message = f"the runs are {format_duration(pause)} apart; use a shorter jitter"
            raise PydanticCustomError("jitter", "{reason}", {"reason": message})
        return value

    @field_validator("ends_at")
    @classmethod
    def _after_the_beginning(cls, value: datetime | None, info: ValidationInfo) -> datetime | None:
        begin = info.data.get("starts_at")
        if value is not None and begin is not None and begin >= value:
            raise PydanticCustomError("end", "use a time after `starts_at`")
        return value

    @property
    def cron_fields(self) -> str:
        """The cron expression in five fields; only for schedules with `cron`."""
        return parse_cron(self.cron or "")

    def as_json(self) -> dict[str, Any]:
        """Return the stored JSON; durations in ISO 8601."""
        return self.model_dump(mode="json", include=set(ScheduleDefinition.model_fields))
