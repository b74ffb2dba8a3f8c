"""Schemas of accounting."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, ClassVar

from pydantic import BeforeValidator, Field

from tocsin import accounting
from tocsin.fields import parse_iso_duration
from tocsin.model import EventType, Json, SessionStatus, Severity, Verdict
from tocsin.web.parsing import QueryModel, ResponseModel
from tocsin.web.schemas.deliveries import DeliveryStatusItem, TracedAttempt
from tocsin.web.schemas.examples import DELIVERY_ID, EVENT_ID, FINISHED, SESSION_ID
from tocsin.web.schemas.fields import Timestamp
from tocsin.web.schemas.sessions import WriteBackOutcome

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

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "provider": "edge",
        "stream": "changed",
        "source": "/var/log/suricata/eve.json",
        "from": 0,
        "to": 81_920,
        "outcome": "read",
        "finished_at": FINISHED,
    }

    outcome: str = Field(description="`read`, or `lost` in part.")
    reason: str | None
    started_at: datetime
    finished_at: datetime


class TracedIncident(ResponseModel):
    """Which incident it is."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "number": 4711,
        "provider": "cloud",
        "external_id": "5c1e9a52-7d0b-4f8e-9f4b-0f6a3a1c2d3e",
        "title": "Many failed sign-ins, then one that succeeded",
        "severity": "High",
    }

    number: int
    provider: str
    external_id: str
    title: str
    severity: Severity
    created_at: datetime


class AlertOutcome(ResponseModel):
    """What was said of an incident's alert."""

    EXAMPLE: ClassVar[dict[str, Json]] = {"detail": "an incident-alert event was created"}

    outcome: str = Field(
        json_schema_extra={"enum": ["alerted", "below-threshold", "quiet", "rose-unalerted"]}
    )
    detail: str = Field(description="The same in words.")


class TracedDelivery(DeliveryStatusItem):
    """One delivery, with every attempt at it."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "id": DELIVERY_ID,
        "destination": "soar",
        "reason": "503: busy",
        "due_at": FINISHED,
    }

    attempts: list[TracedAttempt]


class TracedEvent(ResponseModel):
    """One event about an incident."""

    EXAMPLE: ClassVar[dict[str, Json]] = {"id": EVENT_ID, "outcome": "on-its-way"}

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

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "state": "written",
        "attempts": 0,
        "finished_at": FINISHED,
        "created_at": FINISHED,
    }

    created_at: datetime


class TracedInvestigation(ResponseModel):
    """One investigation that has examined an incident."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "id": SESSION_ID,
        "query": "Is 203.0.113.7 still at it? #4711",
        "status": "completed",
        "title": "Brute force from 203.0.113.7 against web01",
        "verdict": "malicious",
        "risk_score": 78.0,
        "created_by": "playbooks",
        "completed_at": FINISHED,
        "events": [],
    }

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

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "provider": "edge",
        "stream": "changed",
        "source": "/var/log/suricata/eve.json",
        "from": 0,
        "to": 81_920,
        "stretches": 24,
        "records": 310,
        "changed": 0,
        "rejected": 0,
        "read_at": FINISHED,
    }

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

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "destination": "soar",
        "delivered": 0,
        "on_hold": 0,
        "dead": 0,
    }

    destination: str
    delivered: int
    pending: int
    on_hold: int
    dead: int


class OutstandingDelivery(DeliveryStatusItem):
    """A delivery that is not there."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "id": DELIVERY_ID,
        "destination": "soar",
        "reason": "503: busy",
        "due_at": FINISHED,
        "event_id": EVENT_ID,
        "subject": "incident:4711",
    }

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

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "since": "2026-11-20T06:10:00.000Z",
        "until": FINISHED,
        "holes": [],
        "lost": [],
        "passed_over": [],
        "failures": [],
        "silent": [],
        "quarantined": 0,
        "incidents": {"alerted": 1, "below-threshold": 0, "quiet": 0, "rose-unalerted": 0},
        "events": {
            "arrived": 0,
            "on-its-way": 1,
            "on_hold": 0,
            "dead": 0,
            "concerned-nobody": 0,
            "not-routed": 0,
        },
        "unaccounted": [],
    }

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
