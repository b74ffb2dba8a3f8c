"""Accounting for one incident, and for a period."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated

from pydantic import BeforeValidator, Field
from sqlalchemy import Connection

from tocsin import accounting
from tocsin.errors import CallerError
from tocsin.fields import parse_iso_duration
from tocsin.model import EventType, SessionStatus, Severity, Verdict
from tocsin.web.context import RequestContext, Response
from tocsin.web.parsing import QueryModel, ResponseModel, parse_number
from tocsin.web.routes.deliveries import DeliveryStatusItem, TracedAttempt
from tocsin.web.routes.fields import Timestamp
from tocsin.web.routes.sessions import WriteBackOutcome

_DAY = timedelta(days=1)


def _parse_timespan(text: str) -> timedelta:
    timespan = parse_iso_duration(text)
    if timespan > accounting.LONGEST_PERIOD:
        raise ValueError(f"give P{accounting.LONGEST_PERIOD.days}D at most")
    return timespan


class ProofQuery(QueryModel):
    """Which period."""

    timespan: Annotated[timedelta, BeforeValidator(_parse_timespan)] = Field(
        default=_DAY,
        description="How long the period is: an ISO 8601 duration, by default `P1D`, at most "
        f"`P{accounting.LONGEST_PERIOD.days}D`.",
    )
    until: Timestamp | None = Field(
        default=None, description="When it ends, in ISO 8601 with a time zone; by default now."
    )


class _SourceInterval(ResponseModel):
    provider: str
    stream: str = Field(description="One of the provider's own streams, such as `changed`.")
    source: str = Field(description="What was read: a file, or what the provider calls it.")
    from_: int | str = Field(alias="from", description="A byte of a file, or a time.")
    to: int | str = Field(description="Up to there, without it.")


class CoverageInterval(_SourceInterval):
    """The stretch of a source that brought an incident."""

    outcome: str = Field(description="`read`, or `lost` in part.")
    reason: str | None
    started_at: datetime
    finished_at: datetime


class TracedIncident(ResponseModel):
    """Which incident it is."""

    number: int
    provider: str
    external_id: str
    title: str
    severity: Severity
    created_at: datetime


class AlertOutcome(ResponseModel):
    """What was said of an incident's alert."""

    outcome: str = Field(
        json_schema_extra={"enum": ["alerted", "below-threshold", "quiet", "rose-unalerted"]}
    )
    detail: str = Field(description="The same in words.")


class TracedDelivery(DeliveryStatusItem):
    """One delivery, with every attempt at it."""

    attempts: list[TracedAttempt]


class TracedEvent(ResponseModel):
    """One event about an incident."""

    id: str
    event_type: EventType
    timestamp: datetime
    outcome: str = Field(
        description="That of its worst delivery; `concerned-nobody` where there is none.",
        json_schema_extra={"enum": [*accounting.EVENT_OUTCOMES]},
    )
    deliveries: list[TracedDelivery]


class TracedWriteBack(WriteBackOutcome):
    """A comment that an investigation leaves at the incident's SIEM."""

    created_at: datetime


class TracedInvestigation(ResponseModel):
    """One investigation that has examined an incident."""

    id: str
    schedule_id: str | None = Field(description="The schedule that began it; null for a person.")
    query: str
    status: SessionStatus
    title: str | None
    verdict: Verdict | None
    risk_score: float | None
    error: str | None
    created_by: str
    created_at: datetime
    completed_at: datetime | None
    events: list[TracedEvent]
    write_backs: list[TracedWriteBack]


class Trace(ResponseModel):
    """The chain of one incident, from the stretch that brought it to each attempt."""

    incident: TracedIncident
    coverage: CoverageInterval
    alert: AlertOutcome
    events: list[TracedEvent]
    investigations: list[TracedInvestigation] = Field(
        description="Those that have examined it, the newest first, "
        f"{accounting.MAX_INVESTIGATIONS} at most."
    )


class CoveredSource(_SourceInterval):
    """What was read of one source."""

    stretches: int
    records: int
    new: int = Field(description="Incidents that were new.")
    changed: int = Field(description="Incidents that had changed.")
    rejected: int = Field(description="Records that were kept aside.")
    read_at: datetime


class CoverageGap(_SourceInterval):
    """What lies between stretches that were read, and was not."""

    found_at: datetime


class UnreadInterval(_SourceInterval):
    """What was not read, and why."""

    reason: str
    found_at: datetime


class StreamFailure(ResponseModel):
    """When a stream could not be read."""

    provider: str
    stream: str
    outcome: str
    reason: str | None
    from_: datetime = Field(alias="from")
    to: datetime
    read_since: bool


class SilentStream(ResponseModel):
    """A stream that was not read for long, without a failure that says why."""

    provider: str
    stream: str
    read_at: datetime


class DestinationCounts(ResponseModel):
    """How many deliveries of one destination are in each state."""

    destination: str
    delivered: int
    pending: int
    on_hold: int
    dead: int


class OutstandingDelivery(DeliveryStatusItem):
    """A delivery that is not there."""

    event_id: str
    event_type: EventType
    subject: str
    timestamp: datetime = Field(description="The event's.")
    attempts: int


class UnexplainedItem(ResponseModel):
    """Something that nothing explains."""

    kind: str = Field(json_schema_extra={"enum": [*accounting.ANOMALY_KINDS]})
    what: str
    since: datetime
    detail: str


class Proof(ResponseModel):
    """The account of a period."""

    since: datetime
    until: datetime
    coverage: list[CoveredSource]
    holes: list[CoverageGap]
    lost: list[UnreadInterval] = Field(
        description="What could not be read, and has not been since."
    )
    passed_over: list[UnreadInterval] = Field(description="What was not meant to be read.")
    failures: list[StreamFailure]
    silent: list[SilentStream]
    quarantined: int = Field(description="Records that could not be understood.")
    incidents: dict[str, int] = Field(description="How many were new, by their alert's outcome.")
    events: dict[str, int] = Field(description="How many there were, by outcome.")
    destinations: list[DestinationCounts]
    not_arrived: list[OutstandingDelivery] = Field(
        description=f"The oldest, {accounting.MAX_LISTED} at most, as of `holes`, `lost` and "
        "`failures`."
    )
    not_arrived_total: int
    unaccounted: list[UnexplainedItem] = Field(
        description="Empty where everything is accounted for; "
        f"{accounting.MAX_LISTED} of a kind at most."
    )


def get_incident_trace(connection: Connection, call: RequestContext) -> Response:
    """Answer the whole chain of one incident."""
    number = parse_number(call.path["number"])
    found = accounting.trace_incident(connection, number) if number else None
    if found is None:
        raise CallerError(404, "There is no incident of this number.")
    return Response(found)


def get_proof(connection: Connection, call: RequestContext) -> Response:
    """Answer the account of a period: what was read, where it arrived, what nothing explains."""
    query: ProofQuery = call.query
    now = call.services.clock.now()
    until = min(query.until or now, now)
    period = accounting.Period(until - query.timespan, until)
    return Response(accounting.report_period(connection, period, now))
