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
    """What to investigate."""

    EXAMPLE: ClassVar[dict[str, Json]] = {"query": "Is 203.0.113.7 still at it? #4711"}

    query: QueryText = Field(
        description="What to find out, in words: incident numbers, entities, time ranges, terms."
    )
    persona: Annotated[Persona, any_case(Persona)] = Field(
        default=Persona.ANALYST,
        description="For whom it is: how deep it looks, and what the report shows.",
    )
    provider: Annotated[str, StringConstraints(min_length=1, max_length=100)] | None = Field(
        default=None, description="The only provider to look at; all by default."
    )


class NewMessage(BodyModel):
    """A follow-up."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "message": "And what of the whole network over the last month?"
    }

    message: QueryText = Field(description="What else to find out.")


class StartedSession(ResponseModel):
    """A session that was taken up."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "session_id": SESSION_ID,
        "url": f"{URL}/investigations/{SESSION_ID}",
    }

    session_id: str
    status: SessionStatus
    url: str = Field(description="Its page in Tocsin's console.")


class SessionProgress(ResponseModel):
    """How far a session under way has come."""

    EXAMPLE: ClassVar[dict[str, Json]] = {"phase": "report", "steps": 31, "asked": 22}

    phase: Phase | None = Field(description="What it is doing; null before it has begun.")
    steps: int = Field(description="How many steps its ledger has.")
    asked: int = Field(description="How many of them asked someone.")


class SessionMessage(ResponseModel):
    """Something that was said in a session."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "text": "Is 203.0.113.7 still at it? #4711",
        "created_by": "playbooks",
    }

    role: str = Field(json_schema_extra={"enum": ["user", "investigator"]})
    text: str
    run: int = Field(description="In which run: 1 for the query, one more for each follow-up.")
    created_by: str
    created_at: datetime


class SessionSummary(ResponseModel):
    """A session, as lists have it."""

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
    schedule_id: str | None = Field(description="The schedule that it is a run of, if it is one.")
    run: int = Field(description="How often it was asked: 1 for the query alone.")
    progress: SessionProgress
    error: str | None = Field(description="Why it has failed.")
    title: str | None
    verdict: Verdict | None
    confidence: Confidence | None
    risk_score: float | None = Field(description="From 0 to 100.")
    entity_count: int | None
    finding_count: int | None
    created_by: str
    created_at: datetime
    updated_at: datetime
    completed_at: datetime | None
    url: str = Field(description="Its page in Tocsin's console.")


class WriteBackOutcome(ResponseModel):
    """What became of a comment to an incident's SIEM."""

    run: int
    state: WriteBackState
    attempts: int = Field(description="How often it could not be written.")
    reason: str | None = Field(description="Why not, the last time.")
    finished_at: datetime | None


class SessionWriteBack(WriteBackOutcome):
    """A comment that a session leaves at an incident's SIEM."""

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
    """A session, with what was said in it."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "report": "# Brute force from 203.0.113.7 against web01\n\n..."
    }

    messages: list[SessionMessage]
    report: str | None = Field(
        description="The report of the last run that completed, as Markdown; null until one has."
    )
    write_backs: list[SessionWriteBack] = Field(
        description="What it leaves as comments at the SIEMs of the incidents that it was about."
    )
