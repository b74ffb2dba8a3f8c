"""Schemas of investigations."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from tocsin.fields import any_case
from tocsin.model import Json, Persona, Phase, QueryOutcome, SessionStatus
from tocsin.web.parsing import QueryModel, ResponseModel
from tocsin.web.schemas.examples import CREATED, FINISHED
from tocsin.web.schemas.fields import Limit, TotalRelation, cursor_field
from tocsin.web.schemas.sessions import SessionSummary

LIST = "s"

STEPS = "t"

_Text = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[^\x00]+$")]


class InvestigationQuery(QueryModel):
    """Query parameters for listing investigations."""

    status: Annotated[SessionStatus, any_case(SessionStatus)] | None = Field(
        default=None, description="Filter by status, case-insensitive."
    )
    persona: Annotated[Persona, any_case(Persona)] | None = Field(
        default=None, description="Filter by persona, case-insensitive."
    )
    provider: _Text | None = Field(
        default=None,
        description="Only investigations that are restricted to this provider.",
    )
    schedule: _Text | None = Field(default=None, description="Filter by schedule ID.")
    limit: Limit = 50
    cursor: cursor_field(LIST) | None = None  # type: ignore[valid-type]


class StepQuery(QueryModel):
    """Query parameters for listing steps."""

    run: Annotated[int, Field(ge=1, le=1_000_000)] | None = Field(
        default=None, description="Filter by run."
    )
    limit: Limit = 50
    cursor: cursor_field(STEPS) | None = None  # type: ignore[valid-type]


class InvestigationList(ResponseModel):
    """One page of investigations."""

    investigations: list[SessionSummary]
    total: int = Field(description="Number of matches, counted up to 10,000.")
    total_relation: TotalRelation
    next_cursor: str | None = Field(description="Next `cursor`; null on the last page.")


class InvestigationReport(BaseModel):
    """A report as JSON; `docs/reference/report.md` lists every member."""

    model_config = ConfigDict(extra="allow")

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "title": "Brute force from 203.0.113.7 against web01",
        "verdict": "malicious",
        "confidence": "high",
        "risk_score": 78.0,
        "summary": [
            {"text": "203.0.113.7 is in 4 incidents of the last week.", "evidence": ["step:7"]}
        ],
        "findings": [
            {
                "id": "F1",
                "kind": "shared-entity",
                "title": "4 incidents share 203.0.113.7",
                "severity": "High",
                "statements": [
                    {
                        "text": "203.0.113.7 is in 4 incidents of the last week.",
                        "evidence": ["step:7"],
                    }
                ],
                "entities": [{"kind": "ip", "value": "203.0.113.7"}],
                "incidents": [4711, 4702],
                "techniques": ["T1110"],
            }
        ],
        "entities": [
            {
                "entity": {"kind": "ip", "value": "203.0.113.7"},
                "disposition": "malicious",
                "internal": False,
                "well_known": False,
                "depth": 0,
                "incident_count": 4,
                "first_seen": CREATED,
                "last_seen": FINISHED,
                "statements": [
                    {
                        "text": "203.0.113.7 is in 4 incidents of the last week.",
                        "evidence": ["step:7"],
                    }
                ],
            }
        ],
    }

    title: str
    verdict: str
    confidence: str
    risk_score: float
    summary: list[Any]
    findings: list[Any]
    entities: list[Any]


class InvestigationFindings(ResponseModel):
    """Findings of the report."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "findings": [
            {
                "id": "F1",
                "kind": "shared-entity",
                "title": "4 incidents share 203.0.113.7",
                "severity": "High",
                "statements": [
                    {
                        "text": "203.0.113.7 is in 4 incidents of the last week.",
                        "evidence": ["step:7"],
                    }
                ],
                "entities": [{"kind": "ip", "value": "203.0.113.7"}],
                "incidents": [4711, 4702],
                "techniques": ["T1110"],
            }
        ]
    }

    findings: list[dict[str, Any]] = Field(description="Findings of the report.")
    total: int


class InvestigationEntities(ResponseModel):
    """Entities of the report and how they were assessed."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "entities": [
            {
                "entity": {"kind": "ip", "value": "203.0.113.7"},
                "disposition": "malicious",
                "internal": False,
                "well_known": False,
                "depth": 0,
                "incident_count": 4,
                "first_seen": CREATED,
                "last_seen": FINISHED,
                "statements": [
                    {
                        "text": "203.0.113.7 is in 4 incidents of the last week.",
                        "evidence": ["step:7"],
                    }
                ],
            }
        ]
    }

    entities: list[dict[str, Any]] = Field(description="Entities of the report.")
    total: int


class InvestigationTimeline(ResponseModel):
    """Timeline of the report."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "timeline": [
            {
                "at": CREATED,
                "statement": {
                    "text": "203.0.113.7 is in 4 incidents of the last week.",
                    "evidence": ["step:7"],
                },
                "severity": "High",
                "source": "provider:edge",
            }
        ]
    }

    timeline: list[dict[str, Any]] = Field(description="Timeline of the report.")
    total: int


class SessionStep(ResponseModel):
    """A step of an investigation: a query with its outcome, or a conclusion."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "number": 7,
        "phase": "gather",
        "kind": "SightingsOf",
        "asked_of": "graph",
        "question": {"entities": [{"kind": "ip", "value": "203.0.113.7"}]},
        "outcome": "answered",
        "duration_ms": 2,
    }

    number: int = Field(description="Number of the step. Evidence cites step 12 as `step:12`.")
    run: int
    phase: Phase
    kind: str = Field(description="Kind of query, or `conclusion`.")
    asked_of: str | None = Field(description="Source that was queried, such as `provider:edge`.")
    question: dict[str, Any] | None
    outcome: QueryOutcome | None
    reason: str | None = Field(description="Why the answer is missing or incomplete.")
    conclusion: str | None
    evidence: list[str] | None = Field(description="Evidence for the conclusion; null for a query.")
    started_at: datetime
    duration_ms: int


class SessionStepDetail(SessionStep):
    """A step with its answer."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "answer": [{"entity": {"kind": "ip", "value": "203.0.113.7"}, "incident_count": 4}]
    }

    answer: Any = Field(description="Answer to the query; null if there is none.")


class SessionSteps(ResponseModel):
    """One page of steps."""

    EXAMPLE: ClassVar[dict[str, Json]] = {"total": 31}

    steps: list[SessionStep]
    total: int
    next_cursor: str | None = Field(description="Next `cursor`; null on the last page.")
