"""What a schedule is defined by, in `plugins.toml` and over HTTP alike."""

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

from tocsin.fields import (
    Duration,
    QueryText,
    WholeNumber,
    any_case,
    format_duration,
    format_iso_duration,
)
from tocsin.model import Persona, Vocabulary
from tocsin.recurrence.cron import LONGEST, CronError, find_shortest_pause, parse_cron
from tocsin.validation import suggest_nearest

_MOST_TAGS = 20
_YEARS = (1970, 9000)


class Overlap(Vocabulary):
    """What becomes of a run that is due while the one before is under way."""

    SKIP = "skip"
    """It is left out, and that is noted."""
    QUEUE = "queue"
    """It runs after it."""


def _validate_cron(value: str) -> str:
    try:
        parse_cron(value)
    except CronError as error:
        raise PydanticCustomError("cron", "{reason}", {"reason": str(error)}) from None
    return value


@cache
def _load_zones() -> set[str]:
    """Return the names of all zones; to read them takes a while."""
    return available_timezones() - {"localtime", "Factory"}  # which say nothing, or vary


def _validate_zone(value: str) -> str:
    if value not in _load_zones():
        hint = suggest_nearest(value, sorted(_load_zones()))
        words = f"give a time zone of the IANA database, such as 'Europe/Berlin'{hint}"
        raise PydanticCustomError("zone", "{words}", {"words": words})
    ZoneInfo(value)
    return value


def _duration_between(shortest: timedelta, longest: timedelta) -> AfterValidator:
    """Take whole seconds within bounds."""

    def judge(value: timedelta) -> timedelta:
        if not shortest <= value <= longest or value.microseconds:
            bounds = {"from": format_duration(shortest), "to": format_duration(longest)}
            raise PydanticCustomError("duration", "give whole seconds, from {from} to {to}", bounds)
        return value

    return AfterValidator(judge)


def _validate_moment(value: datetime) -> datetime:
    if not _YEARS[0] <= value.year <= _YEARS[1]:
        raise PydanticCustomError("moment", "give a moment of this age")
    return value.astimezone(UTC)


def _validate_tag(value: str) -> str:
    if not _TAG.fullmatch(value):
        words = "give 1 to 50 letters, digits, dots, colons, - and _, a letter or digit first"
        raise PydanticCustomError("tag", "{words}", {"words": words})
    return value


_TAG = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_.:-]{0,49}$")
_SECOND, _DAY = timedelta(seconds=1), timedelta(days=1)
_Strict = Annotated[Duration, Field(strict=True)]  # a number alone does not say of what
Interval = Annotated[_Strict, _duration_between(10 * _SECOND, 366 * _DAY)]
Moment = Annotated[AwareDatetime, AfterValidator(_validate_moment)]
Tag = Annotated[
    str,
    AfterValidator(_validate_tag),
    WithJsonSchema({"type": "string", "pattern": _TAG.pattern}),
]


class ScheduleDefinition(BaseModel):
    """What is investigated again and again, and when."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True)

    query: QueryText = Field(
        description="What to find out, in words: entities, time ranges, terms, incident numbers."
    )
    persona: Annotated[Persona, any_case(Persona)] = Field(
        default=Persona.ANALYST, description="For whom it is: how deep it looks."
    )
    provider: Annotated[str, Field(min_length=1, max_length=100)] | None = Field(
        default=None, description="The only provider to look at; all by default."
    )
    cron: Annotated[str, Field(max_length=LONGEST), AfterValidator(_validate_cron)] | None = Field(
        default=None,
        description="When to run: minute, hour, day of month, month, weekday, or `@daily` and "
        "its like; this or `interval`.",
    )
    interval: Interval | None = Field(
        default=None,
        validate_default=True,
        description="Instead of `cron`, how often: from 10 seconds to 366 days.",
    )
    timezone: Annotated[str, Field(max_length=100), AfterValidator(_validate_zone)] = Field(
        default="UTC", description="The time zone that `cron` is in, such as `Europe/Berlin`."
    )
    jitter: Annotated[_Strict, _duration_between(_SECOND, _DAY)] | None = Field(
        default=None,
        description="Put each run off by up to so much, so that not all begin at once; none by "
        "default.",
    )
    starts_at: Moment | None = Field(
        default=None, description="From when on it runs; intervals count from here."
    )
    ends_at: Moment | None = Field(default=None, description="Until when it runs.")
    timeout: Annotated[_Strict, _duration_between(10 * _SECOND, _DAY)] = Field(
        default=timedelta(minutes=10), description="How long a run may take before it has failed."
    )
    misfire_grace: Annotated[_Strict, _duration_between(10 * _SECOND, 7 * _DAY)] = Field(
        default=timedelta(hours=1),
        description="How late a run may begin; one that is later is recorded as missed.",
    )
    overlap: Annotated[Overlap, any_case(Overlap)] = Field(
        default=Overlap.SKIP,
        description="What becomes of a run that is due while the one before is under way: `skip` "
        "leaves it out, `queue` has it run next.",
    )
    failure_limit: Annotated[int, Field(ge=1, le=1_000), WholeNumber] | None = Field(
        default=None,
        description="After how many failures in a row it is disabled; by default "
        "`TOCSIN_SCHEDULE_FAILURE_LIMIT`.",
    )
    tags: Annotated[tuple[Tag, ...], Field(max_length=_MOST_TAGS, strict=False)] = Field(
        default=(), description="Words to find it by."
    )

    @field_serializer("interval", "jitter", "timeout", "misfire_grace", when_used="json")
    def _duration(self, value: timedelta | None) -> str | None:
        return None if value is None else format_iso_duration(value)

    @field_validator("interval")
    @classmethod
    def _one_of_both(cls, value: timedelta | None, info: ValidationInfo) -> timedelta | None:
        # What is wrong itself is not among the data
        if "cron" in info.data and (info.data["cron"] is None) == (value is None):
            both = "both are given" if value is not None else "neither is given"
            words = f"give either `cron` or `interval`; {both}"
            raise PydanticCustomError("either", "{words}", {"words": words})
        return value

    @field_validator("jitter")
    @classmethod
    def _shorter_than_a_pause(
        cls, value: timedelta | None, info: ValidationInfo
    ) -> timedelta | None:
        given = info.data
        if value is None or not {"cron", "interval", "timezone"} <= given.keys():
            return value
        pause = given["interval"] or find_shortest_pause(
            parse_cron(given["cron"]), given["timezone"]
        )
        if value >= pause:
            words = f"the runs are {format_duration(pause)} apart; give a shorter one"
            raise PydanticCustomError("jitter", "{words}", {"words": words})
        return value

    @field_validator("ends_at")
    @classmethod
    def _after_the_beginning(cls, value: datetime | None, info: ValidationInfo) -> datetime | None:
        begin = info.data.get("starts_at")
        if value is not None and begin is not None and begin >= value:
            raise PydanticCustomError("end", "give a moment after `starts_at`")
        return value

    @property
    def cron_fields(self) -> str:
        """The cron expression in its five fields; only where there is one."""
        return parse_cron(self.cron or "")

    def as_json(self) -> dict[str, Any]:
        """Return it as it is stored and shown; durations in ISO 8601."""
        return self.model_dump(mode="json", include=set(ScheduleDefinition.model_fields))
