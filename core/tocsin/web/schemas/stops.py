"""Schemas of emergency stops."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, ClassVar, Self

from pydantic import BeforeValidator, Field, StringConstraints, model_validator

from tocsin.durations import parse_iso_duration
from tocsin.fields import NOT_BLANK
from tocsin.model import Json
from tocsin.stops import MAX_DURATION, StopKind
from tocsin.web.parsing import BodyModel, ResponseModel
from tocsin.web.schemas.examples import CREATED, EXPIRES
from tocsin.web.schemas.fields import Timestamp


def _parse_duration(value: object) -> timedelta | None:
    if value is None:
        return None
    duration = parse_iso_duration(str(value))
    if duration > MAX_DURATION:  # a longer one has no end that a time can hold
        raise ValueError(f"use at most P{MAX_DURATION.days}D")
    return duration


class StopChange(BodyModel):
    """Members of a request that begin or end an emergency stop."""

    enabled: bool | None = None
    until: Timestamp | None = Field(
        default=None,
        description="When Tocsin enables it again. By default, it stays disabled until a request "
        "sets `enabled` to true.",
    )
    duration: Annotated[timedelta, BeforeValidator(_parse_duration)] | None = Field(
        default=None,
        description="How long to disable it, instead of `until`: an ISO 8601 duration.",
    )
    reason: (
        Annotated[
            str,
            StringConstraints(
                strip_whitespace=True, min_length=1, max_length=1000, pattern=NOT_BLANK
            ),
        ]
        | None
    ) = Field(default=None, description="Why it is disabled.")

    @model_validator(mode="after")
    def _require_stop(self) -> Self:
        if self.until and self.duration:
            raise ValueError("use `until` or `duration`, not both")
        if self.enabled is not False and (self.until or self.duration or self.reason):
            raise ValueError("`until`, `duration` and `reason` require `enabled` to be false")
        return self


class CurrentStop(ResponseModel):
    """A current emergency stop."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "by": "ana",
        "reason": "Duplicate tickets",
        "since": CREATED,
        "until": EXPIRES,
    }

    by: str
    reason: str | None
    since: datetime
    until: datetime | None = Field(
        description="When the stop ends automatically; null if someone has to end it."
    )


class PastStop(CurrentStop):
    """An emergency stop in a trace or a proof."""

    EXAMPLE: ClassVar[dict[str, Json]] = {"kind": "destination", "name": "soar"}

    kind: StopKind
    name: str
    ended_at: datetime | None
    ended_by: str | None = Field(
        description="Person who ended the stop; `system` if it ended automatically."
    )
