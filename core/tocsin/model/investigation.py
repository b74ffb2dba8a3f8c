"""Investigation requests, and the questions and results of a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeVar

from tocsin.model.incident import Entity
from tocsin.model.knowledge import Enrichment, IncidentRecord, Neighborhood, SiemEvent, Sighting
from tocsin.model.marking import Marking
from tocsin.model.page import Window
from tocsin.model.report import Persona, Report
from tocsin.model.vocabulary import EntityKind, Severity, Vocabulary

T = TypeVar("T")


class SessionStatus(Vocabulary):
    """Where a session stands."""

    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Phase(Vocabulary):
    """What an investigation is doing, in this order."""

    UNDERSTAND = "understand"
    GATHER = "gather"
    PIVOT = "pivot"
    CORRELATE = "correlate"
    SCORE = "score"
    REPORT = "report"


class QueryOutcome(Vocabulary):
    """What came of a question."""

    ANSWERED = "answered"
    UNAVAILABLE = "unavailable"
    """It could not be asked now: the other side was away, too busy, or not in time."""
    REFUSED = "refused"
    """It may not be asked: credentials, configuration, or how the entity is marked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inquiry:
    """What an investigator is asked."""

    session_id: str
    messages: tuple[str, ...]
    """The query, and each follow-up, the oldest first."""
    persona: Persona
    provider: str | None
    """The only provider to look at; None for all."""
    asked_at: datetime
    """When this run was asked for: what `now` means in it, however long it takes."""
    previous: Report | None = None
    """What the run before came to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSource:
    """A provider that may be asked."""

    name: str
    answers_events: bool
    event_kinds: tuple[EntityKind, ...] = tuple(EntityKind)
    """What it can be asked for events of."""
    reason: str | None = None
    """Why it is not there; None if it is."""
    marking: Marking = field(default_factory=Marking)
    """How what comes from it is marked."""
    read_until: datetime | None = None
    """Up to when its incidents were read; None where it does not tell by time, or is not read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnricherSource:
    """An enricher that may be asked."""

    name: str
    kinds: tuple[EntityKind, ...]
    online: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Who may be asked in this run."""

    providers: tuple[ProviderSource, ...]
    enrichers: tuple[EnricherSource, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundEvents:
    """Events of a SIEM, the earliest first."""

    events: tuple[SiemEvent, ...]
    complete: bool
    """False where there are more than the limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """Something in the history that fits words."""

    kind: str
    """`incident` or `session`."""
    id: str
    title: str
    score: float


class Question(Generic[T]):
    """Something an investigator wants to know; each kind derives from this, and says the answer."""

    __slots__ = ()

    @property
    def asked_of(self) -> str:
        """Return who is asked, such as `incidents`, `provider:edge` or `enricher:history`."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class ListSources(Question[Sources]):
    """Which providers and enrichers there are."""

    @property
    def asked_of(self) -> str:
        """Return `tocsin`."""
        return "tocsin"


@dataclass(frozen=True, slots=True, kw_only=True)
class GetIncidents(Question[tuple[IncidentRecord, ...]]):
    """The incidents of these numbers; one that does not exist is left out."""

    numbers: tuple[int, ...]

    @property
    def asked_of(self) -> str:
        """Return `incidents`."""
        return "incidents"


@dataclass(frozen=True, slots=True, kw_only=True)
class FindIncidents(Question[tuple[IncidentRecord, ...]]):
    """The latest incidents that involve any of these entities, the newest first."""

    entities: tuple[Entity, ...]
    window: Window | None = None
    provider: str | None = None
    limit: int = 50

    @property
    def asked_of(self) -> str:
        """Return `incidents`."""
        return "incidents"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListIncidents(Question[tuple[IncidentRecord, ...]]):
    """The incidents that occurred in a window, the newest first."""

    window: Window
    provider: str | None = None
    min_severity: Severity = Severity.INFORMATIONAL
    limit: int = 50

    @property
    def asked_of(self) -> str:
        """Return `incidents`."""
        return "incidents"


@dataclass(frozen=True, slots=True, kw_only=True)
class GetSightings(Question[tuple[Sighting, ...]]):
    """What is known here of each of these entities, in their order."""

    entities: tuple[Entity, ...]

    @property
    def asked_of(self) -> str:
        """Return `graph`."""
        return "graph"


@dataclass(frozen=True, slots=True, kw_only=True)
class FindNeighbors(Question[Neighborhood]):
    """The graph around an entity."""

    entity: Entity
    depth: int = 1
    limit: int = 100

    @property
    def asked_of(self) -> str:
        """Return `graph`."""
        return "graph"


@dataclass(frozen=True, slots=True, kw_only=True)
class FindEvents(Question[FoundEvents]):
    """A provider's events with an entity, in a window."""

    provider: str
    entity: Entity
    window: Window
    limit: int = 200

    @property
    def asked_of(self) -> str:
        """Return the provider."""
        return f"provider:{self.provider}"


@dataclass(frozen=True, slots=True, kw_only=True)
class GetEnrichments(Question[tuple[Enrichment, ...]]):
    """What an enricher knows of these entities; of those that it knows nothing of, nothing."""

    enricher: str
    entities: tuple[Entity, ...]
    marking: Marking
    """The strictest marking of what they come from."""

    @property
    def asked_of(self) -> str:
        """Return the enricher."""
        return f"enricher:{self.enricher}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHistory(Question[tuple[Match, ...]]):
    """What in the history of incidents and sessions fits these words, the best first."""

    text: str
    limit: int = 20

    @property
    def asked_of(self) -> str:
        """Return `search`."""
        return "search"


QUESTIONS: tuple[type[Question[Any]], ...] = (  # every kind there is
    ListSources,
    GetIncidents,
    FindIncidents,
    ListIncidents,
    GetSightings,
    FindNeighbors,
    FindEvents,
    GetEnrichments,
    SearchHistory,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryResult(Generic[T]):
    """What came of a question."""

    step: str
    """Where in the ledger it stands, to cite as evidence: `step:12`."""
    outcome: QueryOutcome
    content: T | None = None
    """None unless it was answered."""
    reason: str | None = None
    """Why it was not answered, or not in full."""
