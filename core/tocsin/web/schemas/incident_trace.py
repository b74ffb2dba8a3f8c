"""Schemas of the trace of an incident."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from pydantic import Field

from tocsin import accounting
from tocsin.incidents import MAX_HISTORY, AlertDecision
from tocsin.model import ChangeType, EventType, Json, SessionStatus, Severity, Verdict
from tocsin.web.parsing import ResponseModel
from tocsin.web.schemas.deliveries import DeliveryStatusItem, TracedAttempt
from tocsin.web.schemas.examples import DELIVERY_ID, EVENT_ID, FINISHED, SESSION_ID
from tocsin.web.schemas.sessions import WriteBackOutcome
from tocsin.web.schemas.status_mismatches import SiemClosure, TracedRemoteObject
from tocsin.web.schemas.stops import PastStop
from tocsin.web.schemas.triage import ChangedMember, TracedTriage


class SourceInterval(ResponseModel):
    """Interval of a source."""

    provider: str
    stream: str = Field(description="Stream, such as `changed`.")
    source: str = Field(description="Name of the file or source that was read.")
    from_: int | str = Field(
        alias="from", description="Start of the interval: a time or byte offset."
    )
    to: int | str = Field(description="End of the interval (exclusive).")


class CoverageInterval(SourceInterval):
    """The interval in which Tocsin read the incident."""

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
        description="Worst outcome of the deliveries or, if there are none, the reason.",
        json_schema_extra={"enum": [*accounting.EVENT_OUTCOMES]},
    )
    reason: str | None = Field(description="Why the event is on hold.")
    suppressed_by: str | None = Field(
        description="Suppression rule that matched the event. Only plugins with an event hook "
        "received the event."
    )
    deliveries: list[TracedDelivery]


class TracedEvent(_TracedEventBase):
    """An event about an incident."""

    EXAMPLE: ClassVar[dict[str, Json]] = {"id": EVENT_ID, "outcome": "pending"}

    event_type: EventType


class UpdatedObject(ResponseModel):
    """A ticket or similar object that a delivery of a change found."""

    EXAMPLE: ClassVar[dict[str, Json]] = {"destination": "soar", "id": "T-1042"}

    destination: str
    id: str
    closed: bool = Field(description="Whether the delivery closed the object.")


class TracedChange(_TracedEventBase):
    """A change that Tocsin sends to plugins or destinations."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "id": EVENT_ID,
        "outcome": "suppressed",
        "suppressed_by": "known-scan",
        "deliveries": [],
        "objects": [],
        "members": [{"name": "status", "from": "New", "to": "Closed"}],
    }

    event_type: ChangeType
    members: list[ChangedMember] = Field(
        description="Changed members of the incident; empty for a finished investigation."
    )
    objects: list[UpdatedObject] = Field(description="Objects that the deliveries found.")


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
        description="Schedule that started the investigation; null if a user started it."
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
        description="Finished runs that Tocsin sends to plugins or destinations, oldest first."
    )
    write_backs: list[TracedWriteBack]


class Trace(ResponseModel):
    """The complete history of an incident, from the read to each delivery attempt."""

    incident: TracedIncident
    coverage: CoverageInterval
    alert: AlertOutcome
    events: list[TracedEvent]
    changes: list[TracedChange] = Field(
        description=f"The latest {accounting.MAX_CHANGES} changes to the incident that Tocsin "
        "sends to plugins or destinations, oldest first."
    )
    earlier_changes: dict[str, int] = Field(
        description="Number of earlier changes that `changes` does not list, by outcome."
    )
    remote_objects: list[TracedRemoteObject] = Field(
        description="The incident's tickets and similar objects."
    )
    siem_closure: SiemClosure | None = Field(
        description="Latest closure of the incident in the SIEM; null if there is none."
    )
    triage: list[TracedTriage] = Field(
        description=f"The latest {MAX_HISTORY} changes to the triage, oldest first."
    )
    stops: list[PastStop] = Field(
        description="Emergency stops that delayed the incident or its deliveries, newest first."
    )
    investigations: list[TracedInvestigation] = Field(
        description=f"The latest {accounting.MAX_INVESTIGATIONS} investigations that examined the "
        "incident, newest first."
    )
