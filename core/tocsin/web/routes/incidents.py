"""Reading incidents."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator
from sqlalchemy import Connection

from tocsin import incidents
from tocsin.errors import CallerError
from tocsin.fields import any_case, parse_iso_duration
from tocsin.model import EntityKind, IncidentStatus, Severity
from tocsin.web.context import RequestContext, Response
from tocsin.web.pagination import ChangeCursor
from tocsin.web.parsing import QueryModel, ResponseModel, parse_number
from tocsin.web.routes.fields import TotalRelation, total_fields

LONGEST_TIMESPAN = timedelta(days=3650)


def _parse_timespan(text: str) -> timedelta:
    timespan = parse_iso_duration(text)
    if timespan > LONGEST_TIMESPAN:
        raise ValueError(f"give P{LONGEST_TIMESPAN.days}D at most")
    return timespan


CursorField = Annotated[
    ChangeCursor, BeforeValidator(ChangeCursor.decode), WithJsonSchema({"type": "string"})
]
ResumeField = Annotated[
    ChangeCursor, BeforeValidator(ChangeCursor.decode_resume), WithJsonSchema({"type": "string"})
]


class IncidentQuery(QueryModel):
    """Which incidents, and how many at once."""

    severity: Annotated[Severity, any_case(Severity)] | None = Field(
        default=None, description="Only this severity, in any case."
    )
    status: Annotated[IncidentStatus, any_case(IncidentStatus)] | None = Field(
        default=None, description="Only this status, in any case."
    )
    timespan: Annotated[timedelta, BeforeValidator(_parse_timespan)] | None = Field(
        default=None,
        description="Only what changed here within this ISO 8601 duration back from now: weeks, or "
        "days, hours, minutes and seconds, `P3650D` at most.",
    )
    limit: int = Field(default=50, ge=1, le=200, description="How many at most.")
    cursor: CursorField | None = Field(
        default=None, description="The `next_cursor` of the page before."
    )
    changed_after: ResumeField | None = Field(
        default=None,
        description="A `resume_cursor`: only what changed since, in the order of the changes. "
        "Empty: from the beginning. Not together with `cursor`.",
    )

    @model_validator(mode="after")
    def _one_place_to_start(self) -> IncidentQuery:
        if self.cursor is not None and self.changed_after is not None:
            raise ValueError("give cursor or changed_after, not both")
        return self


class EntityItem(ResponseModel):
    """A typed value that an incident is about."""

    kind: EntityKind
    value: str


class IncidentItem(ResponseModel):
    """An incident of a provider, normalised."""

    number: int = Field(description="Tocsin's own number.")
    provider: str
    external_id: str = Field(description="The SIEM's identifier, unique within the provider.")
    external_number: str | None = Field(description="The number that the SIEM shows to people.")
    title: str
    description: str
    severity: Severity
    raw_severity: str | None = Field(description="The SIEM's own word.")
    severity_assumed: bool = Field(description="True where the SIEM's severity was unknown.")
    status: IncidentStatus
    raw_status: str | None = Field(description="The SIEM's own word.")
    merged_into: str | None = Field(
        description="The `external_id` of the incident that this one was merged into."
    )
    occurred_at: datetime
    created_at: datetime = Field(description="When it was first synced.")
    updated_at: datetime = Field(description="When it last changed here.")
    url: str = Field(description="Its page in Tocsin's console.")
    source_url: str | None = Field(description="Its page at the SIEM.")
    alert_count: int
    entities: list[EntityItem]
    techniques: list[str] = Field(description="ATT&CK technique ids.")


class IncidentList(ResponseModel):
    """One page of incidents."""

    incidents: list[IncidentItem]
    total: int = Field(description="How many match, counted up to 10,000.")
    total_relation: TotalRelation
    next_cursor: str | None = Field(description="For `cursor`; null on the last page.")
    resume_cursor: str = Field(description="For `changed_after`.")


def get_incident(connection: Connection, call: RequestContext) -> Response:
    """Answer one incident."""
    number, url = parse_number(call.path["number"]), call.services.public_url
    found = incidents.get_incident(connection, number, public_url=url) if number else None
    if found is None:
        raise CallerError(404, "There is no incident of this number.")
    return Response(found)


def list_incidents(connection: Connection, call: RequestContext) -> Response:
    """Answer one page of incidents."""
    query: IncidentQuery = call.query
    start = query.changed_after or query.cursor
    ascending = start is not None and start.ascending
    page = incidents.list_incidents(
        connection,
        public_url=call.services.public_url,
        limit=query.limit,
        severity=query.severity,
        status=query.status,
        since=call.services.clock.now() - query.timespan if query.timespan else None,
        before=start.change if start and not ascending else None,
        after=start.change if start and ascending else None,
    )
    # What changes while pages are turned moves ahead of the first, so that is where to resume.
    resume = start.resume if start and start.resume is not None else page.resume
    content = {
        "incidents": page.incidents,
        **total_fields(page),
        "next_cursor": None,
        "resume_cursor": ChangeCursor(resume).encode(),
    }
    if page.next is None:
        return Response(content)
    following = ChangeCursor(page.next, None if ascending else resume).encode()
    return Response(content | {"next_cursor": following}, {"Link": call.next_link(following)})
