"""A query client over lists, which records its questions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from tocsin import (
    Edge,
    EnricherSource,
    Enrichment,
    Entity,
    EntityKind,
    FindIncidents,
    GetSightings,
    IncidentRecord,
    IncidentStatus,
    Inquiry,
    ListSources,
    Marking,
    Match,
    Persona,
    Phase,
    ProviderSource,
    QueryOutcome,
    QueryResult,
    Question,
    Relation,
    RelationType,
    Report,
    SearchHistory,
    Severity,
    SiemEvent,
    Sighting,
    Sources,
    Statement,
    Tools,
)
from tocsin.testing.query_script import QueryScript, answer_question
from tocsin_plugins.investigator import DefaultInvestigator

NOW = datetime(2026, 11, 8, 12, 0, tzinfo=UTC)
_DAY = timedelta(days=1)


def ip(value: str) -> Entity:
    return Entity(EntityKind.IP, value)


def host(value: str) -> Entity:
    return Entity(EntityKind.HOST, value)


def user(value: str) -> Entity:
    return Entity(EntityKind.USER, value)


def domain(value: str) -> Entity:
    return Entity(EntityKind.DOMAIN, value)


def ago(**given: float) -> datetime:
    return NOW - timedelta(**given)


def is_external(entity: Entity) -> bool:
    return entity.kind is EntityKind.IP and not entity.value.startswith("10.")


def incident(number: int, title: str = "something", **given) -> IncidentRecord:
    """Return an incident; its external addresses act on its hosts, unless sides are given."""
    involved = given.get("entities", ())
    given = {
        "sources": tuple(filter(is_external, involved)),
        "targets": tuple(entity for entity in involved if entity.kind is EntityKind.HOST),
        **given,
    }
    given = {
        "provider": "edge",
        "severity": Severity.MEDIUM,
        "occurred_at": NOW - _DAY,
        **given,
    }
    return IncidentRecord(
        number=number,
        external_id=str(number),
        title=title,
        description="",
        status=given.pop("status", IncidentStatus.NEW),
        updated_at=given["occurred_at"],
        **given,
    )


def event(summary: str, at: datetime, *entities: Entity, **given) -> SiemEvent:
    """Return an event; its external addresses connect to its hosts, unless relations are given."""
    hosts = [entity for entity in entities if entity.kind is EntityKind.HOST]
    flows = (
        Relation(source=source, type=RelationType.CONNECTED_TO, target=host)
        for source in filter(is_external, entities)
        for host in hosts
    )
    given = {"relations": tuple(flows), **given}
    identifier = f"{summary}@{at.isoformat()}@{entities}"
    return SiemEvent(
        external_id=identifier, occurred_at=at, summary=summary, entities=entities, **given
    )


@dataclass
class World:
    """What there is to be known."""

    incidents: Sequence[IncidentRecord] = ()
    events: Mapping[str, Sequence[SiemEvent]] = field(default_factory=lambda: {"edge": ()})
    """By provider; each that is named answers events."""
    markings: Mapping[str, Marking] = field(default_factory=dict)
    read_until: Mapping[str, datetime] = field(default_factory=dict)
    event_kinds: Mapping[str, Sequence[EntityKind]] = field(default_factory=dict)
    """By provider; one that is not named can be asked for every kind."""
    opinions: Mapping[str, Sequence[Enrichment]] = field(default_factory=dict)
    """By enricher."""
    edges: Sequence[Edge] = ()
    sessions: Sequence[Match] = ()
    well_known: frozenset[Entity] = frozenset()
    down: frozenset[str] = frozenset()
    """Who is away: `provider:edge`, `enricher:lists`, `graph`."""
    silent_from: Mapping[str, int] = field(default_factory=dict)
    """Who stops answering, and after how many questions of all."""
    absent: Mapping[str, str] = field(default_factory=dict)
    """Providers that are left out, and why."""
    older: Mapping[Entity, tuple[int, datetime]] = field(default_factory=dict)
    """In how many incidents more an entity was, and since when."""

    @property
    def script(self) -> QueryScript:
        """The same, for the questions that a scripted client answers."""
        return QueryScript(
            incidents=self.incidents,
            events=self.events,
            enrichments=self.opinions,
            edges=self.edges,
        )


class WorldQueryClient:
    """Answers from a world. Time passes only by `seconds_per_question`."""

    def __init__(self, world: World, seconds_per_question: float = 0) -> None:
        self.world = world
        self.asked: list[Question] = []
        self.concluded: list[tuple[str, tuple[str, ...]]] = []
        self.phases: list[Phase] = []
        self.steps = 0
        self._each = timedelta(seconds=seconds_per_question)

    @property
    def elapsed(self) -> timedelta:
        return len(self.asked) * self._each

    @property
    def references(self) -> set[str]:
        """Everything that may be cited."""
        incidents = {f"incident:{record.number}" for record in self.world.incidents}
        return incidents | {f"step:{number}" for number in range(1, self.steps + 1)}

    def of_kind(self, kind: type) -> list:
        return [question for question in self.asked if isinstance(question, kind)]

    def enter(self, phase: Phase) -> None:
        self.phases.append(phase)

    async def conclude(self, text: str, evidence: Sequence[str]) -> str:
        self.concluded.append((text, tuple(evidence)))
        return self._step()

    async def ask(self, question: Question) -> QueryResult:
        return self._answer(question)

    async def ask_all(self, questions: Sequence[Question]) -> list[QueryResult]:
        return [self._answer(question) for question in questions]

    def _step(self) -> str:
        self.steps += 1
        return f"step:{self.steps}"

    def _answer(self, question: Question) -> QueryResult:
        self.asked.append(question)
        silent = len(self.asked) > self.world.silent_from.get(question.asked_of, len(self.asked))
        if silent or question.asked_of in self.world.down:
            return QueryResult(
                step=self._step(), outcome=QueryOutcome.UNAVAILABLE, reason="it is away"
            )
        content = _ANSWERS.get(type(question), _scripted)(self.world, question)
        return QueryResult(step=self._step(), outcome=QueryOutcome.ANSWERED, content=content)


def _sources(world: World, _question: ListSources) -> Sources:
    there = [
        ProviderSource(
            name=name,
            answers_events=True,
            event_kinds=tuple(world.event_kinds.get(name, EntityKind)),
            marking=world.markings.get(name, Marking()),
            read_until=world.read_until.get(name),
        )
        for name in world.events
    ]
    away = [
        ProviderSource(name=name, answers_events=False, reason=reason)
        for name, reason in world.absent.items()
    ]
    enrichers = [
        EnricherSource(name=name, kinds=tuple(EntityKind), online=name.startswith("online"))
        for name in world.opinions
    ]
    return Sources(providers=(*there, *away), enrichers=tuple(enrichers))


def _scripted(world: World, question: Question) -> object:
    return answer_question(world.script, question)


def _sightings(world: World, question: GetSightings) -> tuple[Sighting, ...]:
    return tuple(_sighting(world, entity) for entity in question.entities)


def _sighting(world: World, entity: Entity) -> Sighting:
    records = answer_question(world.script, FindIncidents(entities=(entity,), limit=10_000))
    more, since = world.older.get(entity, (0, None))
    moments = [record.occurred_at for record in records] + ([since] if since else [])
    return Sighting(
        entity=entity,
        incident_count=len(records) + more,
        first_seen=min(moments, default=None),
        last_seen=max(moments, default=None),
        recent=tuple(record.number for record in records[:10]),
        internal=entity.kind is EntityKind.IP and entity.value.startswith("10."),
        well_known=entity in world.well_known,
    )


def _matching(world: World, question: SearchHistory) -> tuple[Match, ...]:
    words = question.text.lower().split()
    found = [
        Match(kind="incident", id=str(record.number), title=record.title, score=1.0)
        for record in world.incidents
        if all(word in re.findall(r"[\w-]+", record.title.lower()) for word in words)
    ]
    found += [
        session
        for session in world.sessions
        if all(word in session.title.lower() for word in words)
    ]
    return tuple(found[: question.limit])


_ANSWERS = {
    ListSources: _sources,
    GetSightings: _sightings,
    SearchHistory: _matching,
}


def inquire(*messages: str, **given) -> Inquiry:
    given = {"persona": Persona.ANALYST, "provider": None, "asked_at": NOW, **given}
    return Inquiry(session_id="ses_1", messages=messages, **given)


async def investigate(
    world: World, *messages: str, settings: Mapping | None = None, seconds: float = 0, **given
) -> tuple[Report, WorldQueryClient]:
    """Return the report of an inquiry into a world, and the client where it was asked."""
    client = WorldQueryClient(world, seconds)
    chosen = DefaultInvestigator.Settings.model_validate(settings or {})
    tools = Tools(name="investigator", http=None, clock=None, log=None)
    report = await DefaultInvestigator(chosen, tools).investigate(
        inquire(*messages, **given), client
    )
    return report, client


def statements(report: Report) -> list[Statement]:
    """Return every statement of a report."""
    return [
        *report.summary,
        *report.reply,
        *report.gaps,
        *(part.statement for part in report.contributions),
        *(line.statement for line in report.timeline),
        *(statement for finding in report.findings for statement in finding.statements),
        *(statement for entity in report.entities for statement in entity.statements),
        *(action.reason for action in report.actions),
    ]


def kinds(report: Report) -> set[str]:
    """Return the kinds of findings of a report."""
    return {finding.kind for finding in report.findings}


def says(statements: Sequence[Statement], text: str) -> bool:
    """Return whether one of the statements holds a text."""
    return any(text in statement.text for statement in statements)
