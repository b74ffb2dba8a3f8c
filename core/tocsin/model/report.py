"""Investigation reports, in which every statement cites its evidence."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from tocsin.model.incident import Entity
from tocsin.model.knowledge import Disposition, Relation
from tocsin.model.page import Window
from tocsin.model.vocabulary import Severity, Vocabulary


class Persona(Vocabulary):
    """For whom a session is: it sets how deep one looks, and what the report shows."""

    ANALYST = "analyst"
    THREAT_HUNTER = "threat-hunter"
    INCIDENT_RESPONDER = "incident-responder"
    EXECUTIVE = "executive"


class Verdict(Vocabulary):
    """What it is."""

    MALICIOUS = "malicious"
    SUSPICIOUS = "suspicious"
    BENIGN = "benign"
    INCONCLUSIVE = "inconclusive"


class Confidence(Vocabulary):
    """How sure that is."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class Section(Vocabulary):
    """The parts of a report; the summary with verdict and score comes first in any case."""

    SCORE = "score"
    TIMELINE = "timeline"
    FINDINGS = "findings"
    ENTITIES = "entities"
    GAPS = "gaps"
    ACTIONS = "actions"
    EVIDENCE = "evidence"


_WORST = 100


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence, and what it is known from: `step:12` of the ledger, or `incident:7`."""

    text: str
    evidence: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.evidence:
            raise ValueError(f"a statement needs evidence: {self.text!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that was found out."""

    id: str
    """`F1` and so on, in the report's order."""
    kind: str
    """The rule that found it, such as `shared-entity`."""
    title: str
    severity: Severity
    statements: tuple[Statement, ...]
    entities: tuple[Entity, ...] = ()
    incidents: tuple[int, ...] = ()
    techniques: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Contribution:
    """One part of the risk score."""

    name: str
    points: float
    """What it adds; negative where it takes away."""
    statement: Statement


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineEntry:
    """One line of the timeline."""

    at: datetime
    statement: Statement
    severity: Severity | None = None
    """None for what is no incident or alert."""
    source: str
    """Who tells it, such as `provider:edge`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityAssessment:
    """An entity that the investigation met, and what it is taken for."""

    entity: Entity
    disposition: Disposition
    internal: bool = False
    well_known: bool = False
    depth: int = 0
    """How many steps it is away from what was asked about; 0 for that itself."""
    incident_count: int = 0
    first_seen: datetime | None = None
    last_seen: datetime | None = None
    statements: tuple[Statement, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """Something that someone should do."""

    text: str
    reason: Statement
    urgent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What an investigation found, and what it could not."""

    title: str
    query: str
    """What was asked first."""
    persona: Persona
    window: Window
    """The time that was looked at."""
    verdict: Verdict
    confidence: Confidence
    risk_score: float
    """From 0 to 100: the sum of the contributions, kept within that."""
    summary: tuple[Statement, ...]
    reply: tuple[Statement, ...] = ()
    """What answers the last message of a session that was continued."""
    contributions: tuple[Contribution, ...] = ()
    timeline: tuple[TimelineEntry, ...] = ()
    findings: tuple[Finding, ...] = ()
    entities: tuple[EntityAssessment, ...] = ()
    relations: tuple[Relation, ...] = ()
    incidents: tuple[int, ...] = ()
    """The incidents that were examined."""
    about: tuple[int, ...] = ()
    """Those of them that were asked about by their numbers."""
    techniques: tuple[str, ...] = ()
    """ATT&CK techniques, in the order of their tactics."""
    gaps: tuple[Statement, ...] = ()
    """What could not be asked or was left out, and why."""
    actions: tuple[Action, ...] = ()
    sections: tuple[Section, ...] = field(default=tuple(Section))
    """What of it is shown, in this order."""

    def __post_init__(self) -> None:
        if not 0 <= self.risk_score <= _WORST:  # which NaN is not either
            raise ValueError(f"a risk score is from 0 to {_WORST}, not {self.risk_score}")
