"""Schemas of incidents."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Annotated, ClassVar

from pydantic import (
    BeforeValidator,
    Field,
    StringConstraints,
    WithJsonSchema,
    model_validator,
)

from tocsin.durations import parse_iso_duration
from tocsin.fields import any_case
from tocsin.incidents import EntityRole, IncidentFilter, IncidentOrder, TriageFilter
from tocsin.model import DispositionFilter, EntityKind, IncidentStatus, Json, Severity
from tocsin.web.pagination import ChangeCursor, CompositeCursor
from tocsin.web.parsing import QueryModel, ResponseModel
from tocsin.web.schemas.examples import URL
from tocsin.web.schemas.fields import Timestamp, TotalRelation
from tocsin.web.schemas.triage import TriageItem

LONGEST_TIMESPAN = timedelta(days=3650)


def parse_timespan(text: str) -> timedelta:
    """Return the duration in a text; raises ValueError if it is too long or malformed."""
    timespan = parse_iso_duration(text)
    if timespan > LONGEST_TIMESPAN:
        raise ValueError(f"use at most P{LONGEST_TIMESPAN.days}D")
    return timespan


_COUNT = range(10**18)
MOMENT = range(-62_135_596_800_000_000, 253_402_300_800_000_000)
"""Microseconds from the epoch to the earliest and the latest datetime."""
SORTED_CURSORS = {IncidentOrder.OCCURRED: "o", IncidentOrder.SEVERITY: "s"}
"""The letter that identifies the list in its cursors, by sort order."""


def _decode_cursor(text: str) -> ChangeCursor | CompositeCursor:
    try:
        return ChangeCursor.decode(text)
    except ValueError:
        with suppress(ValueError):
            return _decode_sorted(IncidentOrder.OCCURRED, MOMENT, text)
        with suppress(ValueError):
            cursor = _decode_sorted(IncidentOrder.SEVERITY, str, text)
            Severity(str(cursor.parts[0]))
            return cursor
        raise


def _decode_sorted(order: IncidentOrder, first: type[str] | range, text: str) -> CompositeCursor:
    return CompositeCursor.decode(SORTED_CURSORS[order], (first, _COUNT, _COUNT), text)


CursorField = Annotated[
    ChangeCursor | CompositeCursor,
    BeforeValidator(_decode_cursor),
    WithJsonSchema({"type": "string"}),
]

ResumeField = Annotated[
    ChangeCursor, BeforeValidator(ChangeCursor.decode_resume), WithJsonSchema({"type": "string"})
]


_Filter = Annotated[str, StringConstraints(min_length=1, max_length=100, pattern=r"^[^\x00]*$")]
_Entity = Annotated[str, StringConstraints(min_length=1, max_length=2_048, pattern=r"^[^\x00]*$")]


class IncidentQuery(QueryModel):
    """Query parameters for listing incidents."""

    severity: Annotated[Severity, any_case(Severity)] | None = Field(
        default=None, description="Filter by severity, case-insensitive."
    )
    status: Annotated[IncidentStatus, any_case(IncidentStatus)] | None = Field(
        default=None, description="Filter by status, case-insensitive."
    )
    timespan: Annotated[timedelta, BeforeValidator(parse_timespan)] | None = Field(
        default=None,
        description="Only incidents that have changed this recently: an ISO 8601 duration "
        "without years or months, at most `P3650D`.",
    )
    assignee: _Filter | None = Field(
        default=None, description="Filter by assignee; `none` for unassigned incidents."
    )
    disposition: Annotated[DispositionFilter, any_case(DispositionFilter)] | None = Field(
        default=None,
        description="Filter by disposition, case-insensitive; `none` for incidents without one.",
    )
    acknowledged: bool | None = Field(
        default=None, description="Filter by whether the incident is acknowledged."
    )
    tag: Annotated[_Filter, StringConstraints(to_lower=True)] | None = Field(
        default=None, description="Filter by tag, case-insensitive."
    )
    provider: _Filter | None = Field(default=None, description="Filter by provider.")
    watcher: _Filter | None = Field(default=None, description="Filter by watcher.")
    title: _Filter | None = Field(
        default=None, description="Only incidents whose title contains this text, case-insensitive."
    )
    entity: _Entity | None = Field(
        default=None, description="Only incidents with an entity that has this value."
    )
    technique: Annotated[_Filter, StringConstraints(to_upper=True)] | None = Field(
        default=None,
        description="Filter by ATT&CK technique ID, including its sub-techniques.",
    )
    since: Timestamp | None = Field(
        default=None, description="Only incidents that occurred at or after this time."
    )
    until: Timestamp | None = Field(
        default=None, description="Only incidents that occurred before this time."
    )
    limit: int = Field(default=50, ge=1, le=200, description="Maximum number of items.")
    cursor: CursorField | None = Field(
        default=None, description="`next_cursor` of the previous page."
    )
    changed_after: ResumeField | None = Field(
        default=None,
        description="The `resume_cursor` of an earlier response. The response then contains only "
        "later changes, oldest first. If the value is empty, it starts with the first "
        "change. You cannot combine `changed_after` with `cursor`.",
    )
    sort: Annotated[IncidentOrder, any_case(IncidentOrder)] = Field(
        default=IncidentOrder.CHANGED,
        description="Sort order, case-insensitive: last change or occurrence (newest first), or "
        "severity (highest first).",
    )

    @model_validator(mode="after")
    def _one_place_to_start(self) -> IncidentQuery:
        if self.cursor is not None and self.changed_after is not None:
            raise ValueError("use cursor or changed_after, not both")
        if self.changed_after is not None and self.sort is not IncidentOrder.CHANGED:
            raise ValueError("changed_after lists incidents in the order of changes; omit sort")
        kind = self.cursor.kind if isinstance(self.cursor, CompositeCursor) else None
        if self.cursor is not None and kind != SORTED_CURSORS.get(self.sort):
            raise ValueError("use the same sort as in the request that returned this cursor")
        return self

    @property
    def triage(self) -> TriageFilter | None:
        """The filter by triage; None without this filter."""
        wanted = TriageFilter(
            **{each.name: getattr(self, each.name) for each in fields(TriageFilter)}
        )
        return None if wanted == TriageFilter() else wanted

    @property
    def content(self) -> IncidentFilter | None:
        """The filter by content; None without this filter."""
        wanted = IncidentFilter(
            provider=self.provider,
            title=self.title,
            entity=self.entity,
            technique=self.technique,
            occurred_since=self.since,
            occurred_until=self.until,
        )
        return None if wanted == IncidentFilter() else wanted


class EntityItem(ResponseModel):
    """An entity."""

    EXAMPLE: ClassVar[dict[str, Json]] = {"value": "203.0.113.7"}

    kind: EntityKind
    value: str


class IncidentEntity(EntityItem):
    """An entity of an incident."""

    EXAMPLE: ClassVar[dict[str, Json]] = {"value": "203.0.113.7", "role": "source"}

    role: EntityRole | None = Field(
        description="`source` if the activity came from the entity, `target` if it was directed "
        "at the entity, `both`, or null if the role is unknown."
    )


class IncidentItem(ResponseModel):
    """A normalized incident from a provider."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "number": 4711,
        "provider": "cloud",
        "external_id": "5c1e9a52-7d0b-4f8e-9f4b-0f6a3a1c2d3e",
        "external_number": "1042",
        "title": "Many failed sign-ins, then one that succeeded",
        "description": "38 failures from 203.0.113.7 within ten minutes, then a success.",
        "severity": "High",
        "raw_severity": "high",
        "raw_status": "New",
        "occurred_at": "2026-11-21T05:20:00.000Z",
        "url": f"{URL}/incidents/4711",
        "source_url": "https://siem.example.com/incidents/1042",
        "alert_count": 2,
        "entities": [
            {"kind": "ip", "value": "203.0.113.7", "role": "source"},
            {"kind": "user", "value": "ana", "role": "target"},
        ],
        "techniques": ["T1110.003"],
        "tactics": ["TA0006"],
        "triage": TriageItem.EXAMPLE,
    }

    number: int = Field(description="The incident's number in Tocsin.")
    provider: str
    external_id: str = Field(description="ID in the SIEM, unique within the provider.")
    external_number: str | None = Field(description="Number that the SIEM displays.")
    title: str
    description: str
    severity: Severity
    raw_severity: str | None = Field(description="Severity as the SIEM reports it.")
    severity_assumed: bool = Field(
        description="True if the SIEM's severity is unknown and `severity` is therefore `Medium`."
    )
    status: IncidentStatus
    raw_status: str | None = Field(description="Status as the SIEM reports it.")
    merged_into: str | None = Field(
        description="`external_id` of the incident into which this incident was merged."
    )
    occurred_at: datetime
    created_at: datetime = Field(description="When Tocsin first synced the incident.")
    updated_at: datetime = Field(description="When the incident last changed in Tocsin.")
    url: str = Field(description="URL of the page in the console.")
    source_url: str | None = Field(description="URL of the page in the SIEM.")
    alert_count: int
    entities: list[IncidentEntity]
    techniques: list[str] = Field(description="ATT&CK technique IDs.")
    tactics: list[str] = Field(description="ATT&CK tactic IDs, in the order of an attack.")
    triage: TriageItem | None = Field(description="Triage in Tocsin; null until the first triage.")


class TrendQuery(QueryModel):
    """Period of a trend."""

    hours: int = Field(
        default=24, ge=1, le=168, description="Number of hours, including the current hour."
    )


class IncidentTrendHour(ResponseModel):
    """Number of incidents that occurred in an hour."""

    EXAMPLE: ClassVar[dict[str, Json]] = {"counts": {"Critical": 1, "Low": 12}}

    start: datetime
    counts: dict[Severity, int] = Field(
        description="Number of incidents for each severity that occurs."
    )


class IncidentTrend(ResponseModel):
    """Number of incidents by hour."""

    EXAMPLE: ClassVar[dict[str, Json]] = {}

    hours: list[IncidentTrendHour] = Field(description="Hours, earliest first.")


class IncidentAlert(ResponseModel):
    """An alert of an incident."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "external_id": "2f6c1f04",
        "title": "Sign-in from a new country",
        "severity": "High",
        "occurred_at": "2026-11-21T05:20:00.000Z",
        "rule": "Sign-in from a new country",
    }

    external_id: str = Field(description="ID in the SIEM.")
    title: str
    severity: Severity
    occurred_at: datetime
    rule: str | None = Field(description="Name of the detection rule, or its ID if it has no name.")


class IncidentList(ResponseModel):
    """One page of incidents."""

    EXAMPLE: ClassVar[dict[str, Json]] = {"resume_cursor": "YTU2"}

    incidents: list[IncidentItem]
    total: int = Field(description="Number of matches, counted up to 10,000.")
    total_relation: TotalRelation
    next_cursor: str | None = Field(description="Next `cursor`; null on the last page.")
    resume_cursor: str = Field(
        description="Value to send as `changed_after` later, to get all changes since the "
        "request for the first page."
    )
