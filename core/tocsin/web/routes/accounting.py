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
from tocsin.web.calls import Answer, Call
from tocsin.web.parsing import Query, Shown, parse_number
from tocsin.web.routes.deliveries import TracedAttempt, Whereabouts
from tocsin.web.routes.moments import Moment
from tocsin.web.routes.sessions import WriteBackOutcome

_DAY = timedelta(days=1)


def _parse_timespan(text: str) -> timedelta:
    timespan = parse_iso_duration(text)
    if timespan > accounting.LONGEST:
        raise ValueError(f"give P{accounting.LONGEST.days}D at most")
    return timespan


class ProofQuery(Query):
    """Which period."""

    timespan: Annotated[timedelta, BeforeValidator(_parse_timespan)] = Field(
        default=_DAY,
        description="How long the period is: an ISO 8601 duration, by default `P1D`, at most "
        f"`P{accounting.LONGEST.days}D`.",
    )
    until: Moment | None = Field(
        default=None, description="When it ends, in ISO 8601 with a time zone; by default now."
    )


class _Extent(Shown):
    provider: str
    stream: str = Field(description="One of the provider's own streams, such as `changed`.")
    source: str = Field(description="What was read: a file, or what the provider calls it.")
    from_: int | str = Field(alias="from", description="A byte of a file, or a time.")
    to: int | str = Field(description="Up to there, without it.")


class Stretch(_Extent):
    """The stretch of a source that brought an incident."""

    outcome: str = Field(description="`read`, or `lost` in part.")
    reason: str | None
    started_at: datetime
    finished_at: datetime


class TracedIncident(Shown):
    """Which incident it is."""

    number: int
    provider: str
    external_id: str
    title: str
    severity: Severity
    created_at: datetime


class AlertOutcome(Shown):
    """What was said of an incident's alert."""

    outcome: str = Field(
        json_schema_extra={"enum": ["alerted", "below-threshold", "quiet", "rose-unalerted"]}
    )
    detail: str = Field(description="The same in words.")


class TracedDelivery(Whereabouts):
    """One delivery, with every attempt at it."""

    attempts: list[TracedAttempt]


class TracedEvent(Shown):
    """One event about an incident."""

    id: str
    event_type: EventType
    timestamp: datetime
    outcome: str = Field(
        description="That of its worst delivery; `concerned-nobody` where there is none.",
        json_schema_extra={"enum": [*accounting.OUTCOMES]},
    )
    deliveries: list[TracedDelivery]


class TracedWriteBack(WriteBackOutcome):
    """A comment that an investigation leaves at the incident's SIEM."""

    created_at: datetime


class TracedInvestigation(Shown):
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


class Trace(Shown):
    """The chain of one incident, from the stretch that brought it to each attempt."""

    incident: TracedIncident
    coverage: Stretch
    alert: AlertOutcome
    events: list[TracedEvent]
    investigations: list[TracedInvestigation] = Field(
        description="Those that have examined it, the newest first, "
        f"{accounting.MOST_INVESTIGATIONS} at most."
    )


class CoveredSource(_Extent):
    """What was read of one source."""

    stretches: int
    records: int
    new: int = Field(description="Incidents that were new.")
    changed: int = Field(description="Incidents that had changed.")
    rejected: int = Field(description="Records that were kept aside.")
    read_at: datetime


class Hole(_Extent):
    """What lies between stretches that were read, and was not."""

    found_at: datetime


class Unread(_Extent):
    """What was not read, and why."""

    reason: str
    found_at: datetime


class StreamFailure(Shown):
    """When a stream could not be read."""

    provider: str
    stream: str
    outcome: str
    reason: str | None
    from_: datetime = Field(alias="from")
    to: datetime
    read_since: bool


class SilentStream(Shown):
    """A stream that was not read for long, without a failure that says why."""

    provider: str
    stream: str
    read_at: datetime


class DestinationCounts(Shown):
    """How many deliveries of one destination are in each state."""

    destination: str
    delivered: int
    pending: int
    parked: int
    dead: int


class NotArrived(Whereabouts):
    """A delivery that is not there."""

    event_id: str
    event_type: EventType
    subject: str
    timestamp: datetime = Field(description="The event's.")
    attempts: int


class Unaccounted(Shown):
    """Something that nothing explains."""

    kind: str = Field(json_schema_extra={"enum": [*accounting.KINDS]})
    what: str
    since: datetime
    detail: str


class Proof(Shown):
    """The account of a period."""

    since: datetime
    until: datetime
    coverage: list[CoveredSource]
    holes: list[Hole]
    lost: list[Unread] = Field(description="What could not be read, and has not been since.")
    passed_over: list[Unread] = Field(description="What was not meant to be read.")
    failures: list[StreamFailure]
    silent: list[SilentStream]
    quarantined: int = Field(description="Records that could not be understood.")
    incidents: dict[str, int] = Field(description="How many were new, by their alert's outcome.")
    events: dict[str, int] = Field(description="How many there were, by outcome.")
    destinations: list[DestinationCounts]
    not_arrived: list[NotArrived] = Field(
        description=f"The oldest, {accounting.MOST} at most, as of `holes`, `lost` and `failures`."
    )
    not_arrived_total: int
    unaccounted: list[Unaccounted] = Field(
        description=f"Empty where everything is accounted for; {accounting.MOST} of a kind at most."
    )


def get_trace(connection: Connection, call: Call) -> Answer:
    """Answer the whole chain of one incident."""
    number = parse_number(call.path["number"])
    found = accounting.trace(connection, number) if number else None
    if found is None:
        raise CallerError(404, "There is no incident of this number.")
    return Answer(found)


def get_proof(connection: Connection, call: Call) -> Answer:
    """Answer the account of a period: what was read, where it arrived, what nothing explains."""
    query: ProofQuery = call.query
    now = call.services.clock.now()
    until = min(query.until or now, now)
    period = accounting.Period(until - query.timespan, until)
    return Answer(accounting.prove(connection, period, now))
