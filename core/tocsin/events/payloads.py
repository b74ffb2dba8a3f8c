"""What each event tells: the shape of its `data`, and of the envelope around it.

Receivers read the JSON Schemas of these models in the API's description.
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


class IncidentAlert(_EventModel):
    """What is told of a new incident."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "incident_number": 4711,
        "title": "Many failed sign-ins, then one that succeeded",
        "severity": "High",
        "provider": "cloud",
        "url": "https://tocsin.example.com/incidents/4711",
    }

    incident_number: int = Field(description="Tocsin's own number of the incident.")
    title: str = Field(description="The incident's title, as the SIEM has it.")
    severity: Severity
    status: IncidentStatus
    provider: str = Field(description="The name of the provider that it came from.")
    url: str = Field(description="The incident's page in Tocsin's console.")


class InvestigationCompleted(_EventModel):
    """What is told of a scheduled investigation that finished."""

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
    url: str = Field(description="The investigation's page in Tocsin's console.")


class InvestigationFailed(_EventModel):
    """What is told of a scheduled investigation that failed."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "session_id": "ses_01KAJE0M5Y7R3S9T2V4W6X8Z1A",
        "schedule_id": "sch_01KAH4Q7ZB2N8D5M3X9R6T1V0W",
        "schedule_name": "nightly-hunt",
        "error": "The provider cloud did not answer within 120 s.",
        "consecutive_failures": 2,
        "url": "https://tocsin.example.com/schedules/sch_01KAH4Q7ZB2N8D5M3X9R6T1V0W",
    }

    session_id: str
    schedule_id: str
    schedule_name: str
    error: str
    consecutive_failures: int
    url: str = Field(description="The schedule's page in Tocsin's console.")


class ScheduleDisabled(_EventModel):
    """What is told of a schedule that was disabled."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "schedule_id": "sch_01KAH4Q7ZB2N8D5M3X9R6T1V0W",
        "schedule_name": "nightly-hunt",
        "reason": "consecutive_failures",
        "consecutive_failures": 5,
        "last_error": "The provider cloud did not answer within 120 s.",
        "url": "https://tocsin.example.com/schedules/sch_01KAH4Q7ZB2N8D5M3X9R6T1V0W",
    }

    schedule_id: str
    schedule_name: str
    reason: str
    consecutive_failures: int
    last_error: str
    url: str = Field(description="The schedule's page in Tocsin's console.")


class EventEnvelope(_EventModel):
    """What every event is wrapped in."""

    event_type: EventType
    timestamp: datetime = Field(description="When it happened: ISO 8601, UTC, to the millisecond.")
    data: BaseModel


class IncidentAlertEvent(EventEnvelope):
    """A new incident of severity Medium, High or Critical was synced from the SIEM."""

    event_type: Literal[EventType.INCIDENT_ALERT]
    data: IncidentAlert


class InvestigationCompletedEvent(EventEnvelope):
    """A scheduled investigation finished."""

    event_type: Literal[EventType.INVESTIGATION_COMPLETED]
    data: InvestigationCompleted


class InvestigationFailedEvent(EventEnvelope):
    """A scheduled investigation encountered an error."""

    event_type: Literal[EventType.INVESTIGATION_FAILED]
    data: InvestigationFailed


class ScheduleDisabledEvent(EventEnvelope):
    """A schedule was disabled, since its runs failed too often in a row."""

    event_type: Literal[EventType.SCHEDULE_DISABLED]
    data: ScheduleDisabled


ENVELOPES: Mapping[EventType, type[EventEnvelope]] = MappingProxyType(
    {
        EventType.INCIDENT_ALERT: IncidentAlertEvent,
        EventType.INVESTIGATION_COMPLETED: InvestigationCompletedEvent,
        EventType.INVESTIGATION_FAILED: InvestigationFailedEvent,
        EventType.SCHEDULE_DISABLED: ScheduleDisabledEvent,
    }
)
"""The model of each kind of event."""
