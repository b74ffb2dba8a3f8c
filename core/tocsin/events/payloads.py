"""Event payload models: the `data` of each event type, and the envelope.

The OpenAPI document publishes the JSON Schemas of these models.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from tocsin.model import EventType, IncidentStatus, Json, Severity


class _EventModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class IncidentAlertData(_EventModel):
    """Data of an `incident-alert` event."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "incident_number": 4711,
        "title": "Many failed sign-ins, then one that succeeded",
        "severity": "High",
        "status": "New",
        "provider": "cloud",
        "url": "https://tocsin.example.com/incidents/4711",
    }

    incident_number: int = Field(description="The incident's number in Tocsin.")
    title: str = Field(description="The incident's title in the SIEM.")
    severity: Severity
    status: IncidentStatus
    provider: str = Field(description="The name of the incident's provider.")
    url: str = Field(description="The incident's URL in the Tocsin console.")


class InvestigationCompletedData(_EventModel):
    """Data of an `investigation-completed` event."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "session_id": "ses_01KAJE0M5Y7R3S9T2V4W6X8Z1A",
        "schedule_id": "sch_01KAH4Q7ZB2N8D5M3X9R6T1V0W",
        "schedule_name": "nightly-hunt",
        "title": "Sign-ins from new countries",
        "risk_score": 72.5,
        "entity_count": 9,
        "finding_count": 3,
        "url": "https://tocsin.example.com/investigations/ses_01KAJE0M5Y7R3S9T2V4W6X8Z1A",
    }

    session_id: str
    schedule_id: str
    schedule_name: str
    title: str
    risk_score: float
    entity_count: int
    finding_count: int
    url: str = Field(description="The investigation's URL in the Tocsin console.")


class InvestigationFailedData(_EventModel):
    """Data of an `investigation-failed` event."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "session_id": "ses_01KAJE0M5Y7R3S9T2V4W6X8Z1A",
        "schedule_id": "sch_01KAH4Q7ZB2N8D5M3X9R6T1V0W",
        "schedule_name": "nightly-hunt",
        "error": "The provider cloud did not respond within 120 s.",
        "consecutive_failures": 2,
        "url": "https://tocsin.example.com/schedules/sch_01KAH4Q7ZB2N8D5M3X9R6T1V0W",
    }

    session_id: str
    schedule_id: str
    schedule_name: str
    error: str
    consecutive_failures: int
    url: str = Field(description="The schedule's URL in the Tocsin console.")


class ScheduleDisabledData(_EventModel):
    """Data of a `schedule-disabled` event."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "schedule_id": "sch_01KAH4Q7ZB2N8D5M3X9R6T1V0W",
        "schedule_name": "nightly-hunt",
        "reason": "consecutive_failures",
        "consecutive_failures": 5,
        "last_error": "The provider cloud did not respond within 120 s.",
        "url": "https://tocsin.example.com/schedules/sch_01KAH4Q7ZB2N8D5M3X9R6T1V0W",
    }

    schedule_id: str
    schedule_name: str
    reason: str
    consecutive_failures: int
    last_error: str
    url: str = Field(description="The schedule's URL in the Tocsin console.")


class EventEnvelope(_EventModel):
    """Envelope of every event."""

    event_type: EventType
    timestamp: datetime = Field(description="The time of the event, in UTC, with milliseconds.")
    data: BaseModel


class IncidentAlertEvent(EventEnvelope):
    """A new incident with a severity of Medium or higher was read, or an incident's severity rose.

    If the provider's `alert_on_escalation` is `true`, Tocsin also sends the event when an
    incident's severity rises from below Medium to Medium or higher.
    """

    event_type: Literal[EventType.INCIDENT_ALERT]
    data: IncidentAlertData


class InvestigationCompletedEvent(EventEnvelope):
    """A run of a schedule completed."""

    event_type: Literal[EventType.INVESTIGATION_COMPLETED]
    data: InvestigationCompletedData


class InvestigationFailedEvent(EventEnvelope):
    """A run of a schedule failed."""

    event_type: Literal[EventType.INVESTIGATION_FAILED]
    data: InvestigationFailedData


class ScheduleDisabledEvent(EventEnvelope):
    """Tocsin disabled a schedule after too many consecutive failures."""

    event_type: Literal[EventType.SCHEDULE_DISABLED]
    data: ScheduleDisabledData


ENVELOPES: Mapping[EventType, type[EventEnvelope]] = MappingProxyType(
    {
        EventType.INCIDENT_ALERT: IncidentAlertEvent,
        EventType.INVESTIGATION_COMPLETED: InvestigationCompletedEvent,
        EventType.INVESTIGATION_FAILED: InvestigationFailedEvent,
        EventType.SCHEDULE_DISABLED: ScheduleDisabledEvent,
    }
)
"""The envelope model of each event type."""
