"""Schemas of sessions."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, ClassVar

from pydantic import Field, StringConstraints

from tocsin.fields import QueryText, any_case
from tocsin.investigations import WriteBackState
from tocsin.model import Confidence, Json, Persona, Phase, SessionStatus, Verdict
from tocsin.web.parsing import BodyModel, ResponseModel
from tocsin.web.schemas.examples import FINISHED, SESSION_ID, URL


class NewInvestigation(BodyModel):
    """A new investigation."""

    EXAMPLE: ClassVar[dict[str, Json]] = {"query": "Is 203.0.113.7 still at it? #4711"}

    query: QueryText = Field(
        description="Question in plain language. It can contain incident numbers, entities, time "
        "ranges and terms."
    )
    persona: Annotated[Persona, any_case(Persona)] = Field(
        default=Persona.ANALYST,
        description="Audience of the report, which determines its depth and contents.",
    )
    provider: Annotated[str, StringConstraints(min_length=1, max_length=100)] | None = Field(
        default=None, description="Provider to query. By default, Tocsin queries all providers."
    )


class NewMessage(BodyModel):
    """A follow-up message."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "message": "And what of the whole network over the last month?"
    }

    message: QueryText = Field(description="Follow-up question.")


class StartedSession(ResponseModel):
    """A started session."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "session_id": SESSION_ID,
        "url": f"{URL}/investigations/{SESSION_ID}",
    }

    session_id: str
    status: SessionStatus
    url: str = Field(description="URL of the page in the console.")


class SessionProgress(ResponseModel):
    """Progress of an active session."""

    EXAMPLE: ClassVar[dict[str, Json]] = {"phase": "report", "steps": 31, "asked": 22}

    phase: Phase | None = Field(description="Current phase; null before the start.")
    steps: int = Field(description="Number of steps so far.")
    asked: int = Field(description="Number of steps that queried a source.")


class SessionMessage(ResponseModel):
    """A message in a session."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "text": "Is 203.0.113.7 still at it? #4711",
        "created_by": "playbooks",
    }

    role: str = Field(json_schema_extra={"enum": ["user", "investigator"]})
    text: str
    run: int = Field(description="Run number: 1 for the first question, plus 1 for each follow-up.")
    created_by: str
    created_at: datetime


class SessionSummary(ResponseModel):
    """A session in a list."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "id": SESSION_ID,
        "status": "completed",
        "query": "Is 203.0.113.7 still at it? #4711",
        "title": "Brute force from 203.0.113.7 against web01",
        "verdict": "malicious",
        "confidence": "high",
        "risk_score": 78.0,
        "entity_count": 9,
        "finding_count": 3,
        "created_by": "playbooks",
        "updated_at": FINISHED,
        "completed_at": FINISHED,
        "url": f"{URL}/investigations/{SESSION_ID}",
    }

    id: str
    status: SessionStatus
    query: str
    persona: Persona
    provider: str | None
    schedule_id: str | None = Field(description="Schedule that started the session, if any.")
    run: int = Field(description="Number of runs; 1 if there are no follow-ups.")
    progress: SessionProgress
    error: str | None = Field(description="Error message, if the session failed.")
    title: str | None
    verdict: Verdict | None
    confidence: Confidence | None
    risk_score: float | None = Field(description="Risk score, from 0 to 100.")
    entity_count: int | None
    finding_count: int | None
    created_by: str
    created_at: datetime
    updated_at: datetime
    completed_at: datetime | None
    url: str = Field(description="URL of the page in the console.")


class WriteBackOutcome(ResponseModel):
    """Outcome of a comment to the SIEM."""

    run: int
    state: WriteBackState
    attempts: int = Field(description="Number of failed attempts.")
    reason: str | None = Field(description="Why the last attempt failed.")
    finished_at: datetime | None


class SessionWriteBack(WriteBackOutcome):
    """A comment that a session writes to an incident's SIEM."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "state": "written",
        "attempts": 0,
        "finished_at": FINISHED,
        "incident_number": 4711,
        "provider": "cloud",
    }

    incident_number: int
    provider: str


class Session(SessionSummary):
    """A session with its messages."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "report": "# Brute force from 203.0.113.7 against web01\n\n..."
    }

    messages: list[SessionMessage]
    report: str | None = Field(
        description="Report of the last completed run as Markdown; null until a run has completed."
    )
    write_backs: list[SessionWriteBack] = Field(
        description="Comments that the session writes to the incidents in their SIEMs."
    )
