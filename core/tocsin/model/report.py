"""Investigation reports, in which every statement cites its evidence."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from tocsin.model.entity import Entity
from tocsin.model.knowledge import Disposition, Relation
from tocsin.model.page import Window
from tocsin.model.vocabulary import Severity, Vocabulary


class Persona(Vocabulary):
    """The audience of a session, which determines the depth and contents of the report."""

    ANALYST = "analyst"
    THREAT_HUNTER = "threat-hunter"
    INCIDENT_RESPONDER = "incident-responder"
    EXECUTIVE = "executive"


class Verdict(Vocabulary):
    """The verdict of an investigation."""

    MALICIOUS = "malicious"
    SUSPICIOUS = "suspicious"
    BENIGN = "benign"
    INCONCLUSIVE = "inconclusive"


class Confidence(Vocabulary):
    """Confidence in a verdict."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class Section(Vocabulary):
    """Sections of a report. The summary with the verdict and the score always comes first."""

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
    """A sentence and references to its evidence, such as `step:12` or `incident:7`."""

    text: str
    evidence: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.evidence:
            raise ValueError(f"a statement requires evidence: {self.text!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A finding of an investigation."""

    id: str
    """The finding's ID: `F1` for the first finding in the report, `F2` for the second, and so
    on."""
    kind: str
    """The rule that produced the finding, such as `shared-entity`."""
    title: str
    severity: Severity
    statements: tuple[Statement, ...]
    entities: tuple[Entity, ...] = ()
    incidents: tuple[int, ...] = ()
    techniques: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Contribution:
    """A contribution to the risk score."""

    name: str
    points: float
    """How many points it adds to the score; negative if it reduces the score."""
    statement: Statement


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineEntry:
    """An entry in the timeline."""

    at: datetime
    statement: Statement
    severity: Severity | None = None
    """The severity, if the entry is about an incident or alert; otherwise, None."""
    source: str
    """Where the entry comes from, such as `provider:edge`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityAssessment:
    """An entity that the report covers, with its assessment."""

    entity: Entity
    disposition: Disposition
    internal: bool = False
    well_known: bool = False
    depth: int = 0
    """How many pivots lead to the entity; 0 for entities in the query and in the incidents that it
    names."""
    incident_count: int = 0
    first_seen: datetime | None = None
    last_seen: datetime | None = None
    statements: tuple[Statement, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """A recommended action."""

    text: str
    reason: Statement
    urgent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The result of an investigation, with its findings and gaps."""

    title: str
    query: str
    """The first message of the session."""
    persona: Persona
    window: Window
    """The time range that was examined."""
    verdict: Verdict
    confidence: Confidence
    risk_score: float
    """The sum of the contributions, limited to the range from 0 to 100."""
    summary: tuple[Statement, ...]
    reply: tuple[Statement, ...] = ()
    """In a follow-up, the reply to the last message."""
    contributions: tuple[Contribution, ...] = ()
    timeline: tuple[TimelineEntry, ...] = ()
    findings: tuple[Finding, ...] = ()
    entities: tuple[EntityAssessment, ...] = ()
    relations: tuple[Relation, ...] = ()
    incidents: tuple[int, ...] = ()
    """The incidents that were examined."""
    about: tuple[int, ...] = ()
    """The incidents that the query names by number."""
    techniques: tuple[str, ...] = ()
    """ATT&CK techniques, in the order of their tactics."""
    tactics: tuple[str, ...] = ()
    """ATT&CK tactics that the SIEM reports for the examined incidents, in the order of an
    attack."""
    gaps: tuple[Statement, ...] = ()
    """The sources that could not be queried or were skipped, each with the reason."""
    actions: tuple[Action, ...] = ()
    sections: tuple[Section, ...] = field(default=tuple(Section))
    """The sections to show, in this order."""

    def __post_init__(self) -> None:
        if not 0 <= self.risk_score <= _WORST:  # also rejects NaN
            raise ValueError(
                f"the risk score must be between 0 and {_WORST}, not {self.risk_score}"
            )
