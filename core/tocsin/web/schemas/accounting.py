"""Schemas of traces and audits of a period."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, ClassVar

from pydantic import BeforeValidator, Field

from tocsin import accounting
from tocsin.fields import parse_iso_duration
from tocsin.incidents import MAX_HISTORY, AlertDecision
from tocsin.model import ChangeType, EventType, Json, SessionStatus, Severity, Verdict
from tocsin.web.parsing import QueryModel, ResponseModel
from tocsin.web.schemas.deliveries import DeliveryStatusItem, TracedAttempt
from tocsin.web.schemas.examples import DELIVERY_ID, EVENT_ID, FINISHED, SESSION_ID
from tocsin.web.schemas.fields import Timestamp
from tocsin.web.schemas.push import WaitingPushes
from tocsin.web.schemas.sessions import WriteBackOutcome
from tocsin.web.schemas.status_mismatches import (
    RemoteStatusSummary,
    SiemClosure,
    TracedRemoteObject,
)
from tocsin.web.schemas.stops import PastStop
from tocsin.web.schemas.triage import ChangedMember, TracedTriage

_DAY = timedelta(days=1)


def _parse_timespan(text: str) -> timedelta:
    timespan = parse_iso_duration(text)
    if timespan > accounting.LONGEST_PERIOD:
        raise ValueError(f"use at most P{accounting.LONGEST_PERIOD.days}D")
    return timespan


class ProofQuery(QueryModel):
    """Period to audit."""

    timespan: Annotated[timedelta, BeforeValidator(_parse_timespan)] = Field(
        default=_DAY,
        description="Length of the period: an ISO 8601 duration, by default `P1D`, at most "
        f"`P{accounting.LONGEST_PERIOD.days}D`.",
    )
    until: Timestamp | None = Field(
        default=None, description="End of the period, in ISO 8601 with a time zone; by default now."
    )


class _SourceInterval(ResponseModel):
    provider: str
    stream: str = Field(description="The provider's stream, such as `changed`.")
    source: str = Field(description="The provider's name for the file or source that was read.")
    from_: int | str = Field(alias="from", description="Interval start: a time, or a byte offset.")
    to: int | str = Field(description="End of the interval, exclusive.")


class CoverageInterval(_SourceInterval):
    """Interval of a source that contained an incident."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "provider": "edge",
        "stream": "changed",
        "source": "/var/log/suricata/eve.json",
        "from": 0,
        "to": 81_920,
        "outcome": "read",
        "finished_at": FINISHED,
    }

    outcome: str = Field(description="`read`, or `lost` if a part could not be read.")
    reason: str | None
    started_at: datetime
    finished_at: datetime


class TracedIncident(ResponseModel):
    """The traced incident."""

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
    """Outcome of the alert for an incident."""

    EXAMPLE: ClassVar[dict[str, Json]] = {"detail": "an incident-alert event was created"}

    outcome: str = Field(json_schema_extra={"enum": [decision.value for decision in AlertDecision]})
    detail: str = Field(description="Explanation of the outcome.")


class TracedDelivery(DeliveryStatusItem):
    """A delivery with its attempts."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "id": DELIVERY_ID,
        "destination": "soar",
        "reason": "503: busy",
        "due_at": FINISHED,
    }

    attempts: list[TracedAttempt]


class _TracedEventBase(ResponseModel):
    """Members of every event and change."""

    id: str
    timestamp: datetime
    outcome: str = Field(
        description="Worst outcome of the deliveries; without deliveries, `suppressed` if a rule "
        "matched, or `no-destination`.",
        json_schema_extra={"enum": [*accounting.EVENT_OUTCOMES]},
    )
    reason: str | None = Field(description="Reason why the event is on hold.")
    suppressed_by: str | None = Field(
        description="Suppression rule that matched. Only plugins with an event hook got the event."
    )
    deliveries: list[TracedDelivery]


class TracedEvent(_TracedEventBase):
    """An event about an incident."""

    EXAMPLE: ClassVar[dict[str, Json]] = {"id": EVENT_ID, "outcome": "pending"}

    event_type: EventType


class TracedChange(_TracedEventBase):
    """A change that plugins or destinations follow."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "id": EVENT_ID,
        "outcome": "pending",
        "members": [{"name": "status", "from": "New", "to": "Closed"}],
    }

    event_type: ChangeType
    members: list[ChangedMember] = Field(
        description="Changed members of the incident; empty for a finished investigation."
    )


class TracedWriteBack(WriteBackOutcome):
    """A comment that an investigation writes to the SIEM."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "state": "written",
        "attempts": 0,
        "finished_at": FINISHED,
        "created_at": FINISHED,
    }

    created_at: datetime


class TracedInvestigation(ResponseModel):
    """An investigation that examined an incident."""

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
        "changes": [],
    }

    id: str
    schedule_id: str | None = Field(
        description="Schedule that started the investigation; null if a user did."
    )
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
    changes: list[TracedChange] = Field(
        description="Finished runs that plugins or destinations follow, oldest first."
    )
    write_backs: list[TracedWriteBack]


class Trace(ResponseModel):
    """The complete chain of an incident, from the read to each delivery attempt."""

    incident: TracedIncident
    coverage: CoverageInterval
    alert: AlertOutcome
    events: list[TracedEvent]
    changes: list[TracedChange] = Field(
        description="Changes of the incident that plugins or destinations follow, oldest first: at "
        f"most the latest {accounting.MAX_CHANGES}."
    )
    earlier_changes: dict[str, int] = Field(
        description="Number of the changes before those in `changes`, by outcome."
    )
    remote_objects: list[TracedRemoteObject] = Field(description="Tickets and similar objects.")
    siem_closure: SiemClosure | None = Field(description="Latest closure in the SIEM.")
    triage: list[TracedTriage] = Field(
        description=f"Changes to the triage, oldest first: at most the latest {MAX_HISTORY}."
    )
    stops: list[PastStop] = Field(
        description="Stops that delayed the incident or its deliveries, newest first."
    )
    investigations: list[TracedInvestigation] = Field(
        description="Investigations that examined the incident, newest first; at most "
        f"{accounting.MAX_INVESTIGATIONS}."
    )


class CoveredSource(_SourceInterval):
    """Coverage of one source."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "provider": "edge",
        "stream": "changed",
        "source": "/var/log/suricata/eve.json",
        "from": 0,
        "to": 81_920,
        "intervals": 24,
        "stretches": 24,
        "records": 310,
        "changed": 0,
        "rejected": 0,
        "read_at": FINISHED,
    }

    intervals: int = Field(description="Number of intervals that were read.")
    stretches: int = Field(description="Former name of `intervals`.", deprecated=True)
    records: int
    new: int = Field(description="Number of new incidents.")
    changed: int = Field(description="Number of changed incidents.")
    rejected: int = Field(description="Number of quarantined records.")
    read_at: datetime


class CoverageGap(_SourceInterval):
    """A gap between intervals that were read."""

    found_at: datetime


class UnreadInterval(_SourceInterval):
    """An interval that was not read, with the reason."""

    reason: str
    found_at: datetime


class StreamFailure(ResponseModel):
    """An interval of time in which a stream could not be read."""

    provider: str
    stream: str
    outcome: str
    reason: str | None
    from_: datetime = Field(alias="from")
    to: datetime
    read_since: bool


class SilentStream(ResponseModel):
    """A stream that was not read for a long time, without a recorded failure."""

    provider: str
    stream: str
    read_at: datetime


class DestinationCounts(ResponseModel):
    """Number of deliveries of a destination, by state."""

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
    """A delivery that has not arrived."""

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
    timestamp: datetime = Field(description="Time of the event.")
    attempts: int


class UnexplainedItem(ResponseModel):
    """An anomaly: something that the records do not explain."""

    kind: str = Field(json_schema_extra={"enum": [*accounting.ANOMALY_KINDS]})
    what: str
    since: datetime
    detail: str


class TriageAuthor(ResponseModel):
    """Number of triage changes by a user or credential."""

    EXAMPLE: ClassVar[dict[str, Json]] = {"by": "ana", "actor": "admin:ana"}

    by: str
    actor: str = Field(description="The user or credential, as in the audit log.")
    changes: int = Field(description="Number of changes and comments.")
    incidents: int = Field(description="Number of changed incidents.")


class PeriodTriage(ResponseModel):
    """Triage in a period, of incidents that are still stored."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "dispositions": {
            "true-positive": 0,
            "benign-true-positive": 0,
            "false-positive": 1,
            "duplicate": 0,
            "undetermined": 0,
        },
    }

    authors: list[TriageAuthor]
    dispositions: dict[str, int] = Field(
        description="Number of incidents whose disposition was set in the period, by disposition."
    )


class Proof(ResponseModel):
    """Audit of a period."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "since": "2026-11-20T06:10:00.000Z",
        "until": FINISHED,
        "gaps": [],
        "lost": [],
        "passed_over": [],
        "failures": [],
        "silent": [],
        "quarantined": 0,
        "waiting_pushes": [],
        "stops": [],
        "incidents": {
            "alerted": 1,
            "below-threshold": 0,
            "first-seen-closed": 0,
            "quiet": 0,
            "rose-unalerted": 0,
        },
        "events": dict.fromkeys(accounting.EVENT_OUTCOMES, 0) | {"pending": 1},
        "unaccounted": [],
    }

    since: datetime
    until: datetime
    coverage: list[CoveredSource]
    gaps: list[CoverageGap]
    lost: list[UnreadInterval] = Field(
        description="Intervals whose read failed and has not succeeded since."
    )
    passed_over: list[UnreadInterval] = Field(description="Intervals that were skipped on purpose.")
    failures: list[StreamFailure]
    silent: list[SilentStream]
    quarantined: int = Field(description="Number of records that could not be parsed.")
    waiting_pushes: list[WaitingPushes] = Field(
        description="Accepted pushes that are not stored yet."
    )
    stops: list[PastStop] = Field(description="Emergency stops in the period, newest first.")
    incidents: dict[str, int] = Field(
        description="Number of new incidents, by alert outcome. `removed`, if present, is the "
        "number that retention has since removed."
    )
    triage: PeriodTriage
    remote_statuses: list[RemoteStatusSummary]
    siem_closures: dict[str, int] = Field(description="Closures of incidents in SIEMs, by state.")
    events: dict[str, int] = Field(description="Number of events, by outcome.")
    changes: dict[str, int] = Field(
        description="Number of changes that plugins or destinations follow, by outcome."
    )
    destinations: list[DestinationCounts]
    not_arrived: list[OutstandingDelivery] = Field(
        description=f"The oldest {accounting.MAX_LISTED}; also the limit of `gaps`, `lost`, "
        "`passed_over` and `failures`."
    )
    not_arrived_total: int
    unaccounted: list[UnexplainedItem] = Field(
        description="Anomalies; empty if everything is accounted for; at most "
        f"{accounting.MAX_LISTED} of each kind."
    )
