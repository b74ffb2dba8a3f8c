"""Investigation requests, and the questions and results of a run.

Questions and results are plain data, stored as rows of the session's ledger. This lets another node
continue after a crash, and makes runs repeatable.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Generic, TypeVar

from tocsin.model.entity import Entity
from tocsin.model.knowledge import Enrichment, IncidentRecord, Neighborhood, SiemEvent, Sighting
from tocsin.model.marking import Marking
from tocsin.model.page import Window
from tocsin.model.report import Persona, Report
from tocsin.model.vocabulary import EntityKind, Severity, Vocabulary

T = TypeVar("T")


class SessionStatus(Vocabulary):
    """The status of a session."""

    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Phase(Vocabulary):
    """Phases of an investigation, in order."""

    UNDERSTAND = "understand"
    GATHER = "gather"
    PIVOT = "pivot"
    CORRELATE = "correlate"
    SCORE = "score"
    REPORT = "report"


class QueryOutcome(Vocabulary):
    """The outcome of a query."""

    ANSWERED = "answered"
    UNAVAILABLE = "unavailable"
    """The source was unreachable, too busy or too slow."""
    REFUSED = "refused"
    """The credentials, the configuration or an entity's marking does not allow the question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inquiry:
    """A request for an investigation."""

    session_id: str
    messages: tuple[str, ...]
    """The query and all follow-ups, oldest first."""
    persona: Persona
    provider: str | None
    """The only provider to consider; None for all providers."""
    asked_at: datetime
    """When the investigation was requested, which counts as the current time during the whole
    run."""
    previous: Report | None = None
    """The report of the previous run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSource:
    """A provider that an investigation run can query."""

    name: str
    answers_events: bool
    event_kinds: tuple[EntityKind, ...] = tuple(EntityKind)
    """The entity kinds that the provider's event search supports."""
    reason: str | None = None
    """Why the provider is unavailable; None if it is available."""
    marking: Marking = field(default_factory=Marking)
    """The marking of the provider's data."""
    read_until: datetime | None = None
    """Until when Tocsin has read the provider's incidents; None if unknown or not applicable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnricherSource:
    """An enricher that an investigation run can query."""

    name: str
    kinds: tuple[EntityKind, ...]
    online: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """The sources that an investigation run can query."""

    providers: tuple[ProviderSource, ...]
    enrichers: tuple[EnricherSource, ...]
    names_networks: bool = True
    """Whether `[environment]` lists internal networks. If it lists none, private networks count as
    internal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundEvents:
    """Events from a SIEM, earliest first."""

    events: tuple[SiemEvent, ...]
    complete: bool
    """Whether these are all events; False if there are more than the limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundEntities:
    """Entities in stored incidents, most recently seen first."""

    entities: tuple[Entity, ...]
    complete: bool
    """Whether these are all entities; False if there are more than the limit, or more candidates
    than Tocsin can compare."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A result of a search in the history."""

    kind: str
    """The kind of the result: `incident` or `session`."""
    id: str
    title: str
    score: float


class Question(Generic[T]):
    """Base class for questions; its type parameter is the type of the result."""

    __slots__ = ()
    _source: ClassVar[str]

    @property
    def asked_of(self) -> str:
        """The source that answers, such as `incidents`, `provider:edge` or `enricher:history`."""
        return self._source


@dataclass(frozen=True, slots=True, kw_only=True)
class ListSources(Question[Sources]):
    """Asks which providers there are, and which enrichers are available."""

    _source: ClassVar[str] = "tocsin"


@dataclass(frozen=True, slots=True, kw_only=True)
class GetIncidents(Question[tuple[IncidentRecord, ...]]):
    """Asks for incidents by number; unknown numbers are left out."""

    numbers: tuple[int, ...]
    _source: ClassVar[str] = "incidents"


@dataclass(frozen=True, slots=True, kw_only=True)
class FindIncidents(Question[tuple[IncidentRecord, ...]]):
    """Asks for the latest incidents that involve any of these entities, newest first."""

    entities: tuple[Entity, ...]
    window: Window | None = None
    provider: str | None = None
    limit: int = 50
    _source: ClassVar[str] = "incidents"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListIncidents(Question[tuple[IncidentRecord, ...]]):
    """Asks for the incidents that occurred in a window, newest first."""

    window: Window
    provider: str | None = None
    min_severity: Severity = Severity.INFORMATIONAL
    limit: int = 50
    _source: ClassVar[str] = "incidents"


@dataclass(frozen=True, slots=True, kw_only=True)
class FindEntities(Question[FoundEntities]):
    """Asks for entities that occur in stored incidents and match a pattern; see `EntityPattern`.

    With a window, the result contains only entities that were seen in it.
    """

    pattern: str
    kinds: tuple[EntityKind, ...] = (EntityKind.HOST, EntityKind.DOMAIN)
    """The kinds that names with wildcards match. Networks and ranges match only addresses."""
    window: Window | None = None
    limit: int = 200
    _source: ClassVar[str] = "entities"


@dataclass(frozen=True, slots=True, kw_only=True)
class GetSightings(Question[tuple[Sighting, ...]]):
    """Asks for the sightings of each of these entities, in order."""

    entities: tuple[Entity, ...]
    _source: ClassVar[str] = "graph"


@dataclass(frozen=True, slots=True, kw_only=True)
class FindNeighbors(Question[Neighborhood]):
    """Asks for the graph around an entity, up to `depth` steps away (1 to 3)."""

    entity: Entity
    depth: int = 1
    limit: int = 100
    _source: ClassVar[str] = "graph"


@dataclass(frozen=True, slots=True, kw_only=True)
class FindEvents(Question[FoundEvents]):
    """Asks a provider for the events in a window that contain an entity."""

    provider: str
    entity: Entity
    window: Window
    limit: int = 200

    @property
    def asked_of(self) -> str:
        """The provider that answers, such as `provider:edge`."""
        return f"provider:{self.provider}"


@dataclass(frozen=True, slots=True, kw_only=True)
class GetEnrichments(Question[tuple[Enrichment, ...]]):
    """Asks for an enricher's results for these entities; unknown entities are left out."""

    enricher: str
    entities: tuple[Entity, ...]
    marking: Marking
    """The strictest marking of the incidents and events that contain the entities."""

    @property
    def asked_of(self) -> str:
        """The enricher that answers, such as `enricher:history`."""
        return f"enricher:{self.enricher}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHistory(Question[tuple[Match, ...]]):
    """Asks for incidents and sessions that match a text, best match first."""

    text: str
    limit: int = 20
    _source: ClassVar[str] = "search"


QUESTIONS: tuple[type[Question[Any]], ...] = (
    ListSources,
    GetIncidents,
    FindIncidents,
    ListIncidents,
    FindEntities,
    GetSightings,
    FindNeighbors,
    FindEvents,
    GetEnrichments,
    SearchHistory,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryResult(Generic[T]):
    """The result of a question."""

    step: str
    """The step in the ledger, such as `step:12`, which you can cite as evidence."""
    outcome: QueryOutcome
    content: T | None = None
    """The content; None if the question was not answered."""
    reason: str | None = None
    """Why the content is missing or incomplete; None if it is neither."""
