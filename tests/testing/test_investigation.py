"""Scripted query client: same results as the service, and detection of divergence."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from itertools import count

import pytest

from tocsin import (
    Confidence,
    Edge,
    Enrichment,
    Entity,
    EntityKind,
    FindEvents,
    FindIncidents,
    Finding,
    FindNeighbors,
    GetEnrichments,
    GetIncidents,
    GetSightings,
    IncidentRecord,
    IncidentStatus,
    InvestigationFailed,
    Investigator,
    ListIncidents,
    ListSources,
    Marking,
    Match,
    Node,
    Phase,
    QueryOutcome,
    RelationType,
    Report,
    SearchHistory,
    Severity,
    SiemEvent,
    Statement,
    Verdict,
    Window,
)
from tocsin.testing import ScriptedQueryClient, investigate, make_settings, make_tools
from tocsin.testing.investigation import NOON

ADDRESS = Entity(EntityKind.IP, "203.0.113.9")
OTHER = Entity(EntityKind.IP, "203.0.113.10")
DAY = Window(NOON - timedelta(days=1), NOON)


def incident(number: int, *entities: Entity, hours: int = 1) -> IncidentRecord:
    at = NOON - timedelta(hours=hours)
    return IncidentRecord(
        number=number,
        provider="edge",
        external_id=str(number),
        title="Port scan",
        description="",
        severity=Severity.HIGH,
        status=IncidentStatus.NEW,
        occurred_at=at,
        updated_at=at,
        entities=entities,
    )


def event(hours: int) -> SiemEvent:
    at = NOON - timedelta(hours=hours)
    return SiemEvent(external_id=None, occurred_at=at, summary="a login", entities=(ADDRESS,))


def edge(source: Entity, target: Entity) -> Edge:
    return Edge(
        source=Node.of(source),
        type=RelationType.CONNECTED_TO,
        target=Node.of(target),
        first_seen=NOON,
        last_seen=NOON,
        count=1,
        known_from=("incident:1",),
    )


@pytest.fixture
def desk() -> ScriptedQueryClient:
    return ScriptedQueryClient(
        incidents=[incident(1, ADDRESS, hours=30), incident(2, ADDRESS, OTHER)],
        events={"edge": [event(3), event(2), event(1)], "old": []},
        enrichments={"lists": [Enrichment(entity=OTHER, summary="It is on a list")]},
        edges=[edge(ADDRESS, OTHER)],
        matches=[Match(kind="incident", id="1", title="Port scan", score=1)],
        away={"graph": "it is being mended", "provider:old": "it has gone"},
        each_takes=timedelta(seconds=2),
    )


async def contents(desk, *questions) -> list:
    return [answered.content for answered in await desk.ask_all(questions)]


async def test_incidents_are_found_by_number_entity_and_time(desk):
    numbered, about, within = await contents(
        desk,
        GetIncidents(numbers=(2, 7)),
        FindIncidents(entities=(ADDRESS,)),
        ListIncidents(window=DAY),
    )
    assert [record.number for record in numbered] == [2]
    assert [record.number for record in about] == [2, 1]
    assert [record.number for record in within] == [2]


async def test_the_latest_events_are_found_and_that_there_are_more(desk):
    [found] = await contents(desk, FindEvents(provider="edge", entity=ADDRESS, window=DAY, limit=2))
    assert [event.occurred_at.hour for event in found.events] == [10, 11]
    assert not found.complete


async def test_enrichments_and_matches_are_found(desk):
    asked = GetEnrichments(enricher="lists", entities=(ADDRESS, OTHER), marking=Marking())
    said, matches = await contents(desk, asked, SearchHistory(text="scan"))
    assert [enrichment.entity for enrichment in said] == [OTHER]
    assert [match.id for match in matches] == ["1"]


async def test_who_is_there_and_who_is_away(desk):
    [sources] = await contents(desk, ListSources())
    assert {provider.name: provider.reason for provider in sources.providers} == {
        "edge": None,
        "old": "it has gone",
    }
    [away] = await desk.ask_all([GetSightings(entities=(ADDRESS,))])
    assert (away.outcome, away.reason) == (QueryOutcome.UNAVAILABLE, "it is being mended")
    asked = GetEnrichments(enricher="nobody", entities=(ADDRESS,), marking=Marking())
    assert (await desk.ask(asked)).outcome is QueryOutcome.REFUSED


async def test_the_graph_is_walked_from_an_entity(desk):
    desk.away = {}
    sightings, near = await contents(
        desk, GetSightings(entities=(ADDRESS,)), FindNeighbors(entity=ADDRESS)
    )
    assert (sightings[0].incident_count, sightings[0].recent) == (2, (2, 1))
    assert near.nodes == (Node.of(ADDRESS), Node.of(OTHER))
    assert near.complete


async def test_steps_are_numbered_and_kept(desk):
    desk.enter(Phase.GATHER)
    first = await desk.ask(ListSources())
    second = await desk.conclude("There is one.", [first.step])
    assert (first.step, second) == ("step:1", "step:2")
    assert [step.phase for step in desk.steps] == [Phase.GATHER, Phase.GATHER]
    assert desk.asked == [ListSources()]
    assert desk.elapsed == timedelta(seconds=2)


async def test_steps_of_a_session_that_goes_on_follow_those_before():
    desk = ScriptedQueryClient(steps_before=7)
    assert (await desk.ask(ListSources())).step == "step:8"
    assert desk.references == {"step:8"}


class Asking(Investigator):
    """Says that it has asked; what it says besides is a test's."""

    changes: dict = {}  # noqa: RUF012

    async def investigate(self, inquiry, desk):
        found = await self.ask(desk)
        told = Statement("It was asked.", (found.step,))
        await desk.conclude(told.text, told.evidence)
        parts = {
            "title": "A test",
            "query": inquiry.messages[0],
            "persona": inquiry.persona,
            "window": DAY,
            "verdict": Verdict.INCONCLUSIVE,
            "confidence": Confidence.LOW,
            "risk_score": 0,
            "summary": (told,),
        }
        return Report(**parts | self.changes)

    async def ask(self, desk):
        return await desk.ask(FindIncidents(entities=(ADDRESS,)))


async def test_what_the_run_before_cited_may_be_cited_again(desk):
    previous = await investigate(made(Asking), desk, "203.0.113.9?")
    again = ScriptedQueryClient(incidents=desk.incidents, steps_before=2)
    changes = {"summary": (Statement("It is as before.", ("step:1", "step:3", "incident:2")),)}
    report = await investigate(reporting(**changes), again, "?", "And now?", previous=previous)
    assert report.summary[0].text == "It is as before."


def made(kind: type[Investigator]) -> Investigator:
    return kind(make_settings(kind), make_tools())


async def test_a_sound_report_is_returned(desk):
    report = await investigate(made(Asking), desk, "203.0.113.9?")
    assert (report.query, len(desk.steps)) == ("203.0.113.9?", 2)


def reporting(**changes) -> Investigator:
    return made(type("Reporting", (Asking,), {"changes": changes}))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"summary": (Statement("So it is.", ("step:9",)),)},
            "unknown references in the report: step:9",
        ),
        (
            {"gaps": (Statement("So it is.", ("incident:7",)),)},
            "unknown references in the report: incident:7",
        ),
        (
            {"findings": (Finding(id="1", kind="k", title="t", severity="Low", statements=()),)},
            "expected F1",
        ),
    ],
)
async def test_a_report_that_the_service_would_not_take_is_found(desk, changes, words):
    with pytest.raises(AssertionError, match=words):
        await investigate(reporting(**changes), desk, "?")


class Remembering(Asking):
    def __init__(self, settings, tools):
        super().__init__(settings, tools)
        self.runs = count()

    async def ask(self, desk):
        for _ in range(next(self.runs)):
            await desk.ask(ListSources())
        return await super().ask(desk)


class Forgetful(Remembering):
    async def ask(self, desk):
        if next(self.runs) == 0:
            await desk.ask(SearchHistory(text="first"))
        return await desk.ask(ListSources())


class Rambling(Asking):
    runs = count()

    async def investigate(self, inquiry, desk):
        report = await super().investigate(inquiry, desk)
        for _ in range(next(self.runs)):
            await desk.ask(ListSources())
        return report


class Inspired(Remembering):
    @property
    def changes(self):
        return {"title": f"Report {next(self.runs)}"}

    async def ask(self, desk):
        return await Asking.ask(self, desk)


class SideBySide(Asking):
    async def ask(self, desk):
        asking = (super(SideBySide, self).ask(desk) for _ in range(2))
        found, _ = await asyncio.gather(*asking, return_exceptions=True)
        return found


class Inventive(Asking):
    async def ask(self, desk):
        await desk.conclude("It is so.", ["step:4"])
        return await super().ask(desk)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Remembering, "diverges at step:1"),
        (Forgetful, "diverges at step:1"),
        (Rambling, "continues after the end of the first"),
        (Inspired, "returns a different title"),
        (SideBySide, "two tasks asked at the same time"),
        (Inventive, "unknown references in the report: step:4"),
    ],
)
async def test_one_that_cannot_be_replayed_is_found(desk, kind, words):
    with pytest.raises(AssertionError, match=words):
        await investigate(made(kind), desk, "?")


async def test_a_replay_that_ends_early_is_found(desk):
    await desk.ask(ListSources())
    with pytest.raises(AssertionError, match="ends before step:1"):
        desk.replay().check()


async def test_what_an_investigator_raises_comes_through(desk):
    class Failing(Asking):
        async def ask(self, desk):
            raise InvestigationFailed("name an address")

    with pytest.raises(InvestigationFailed, match="name an address"):
        await investigate(made(Failing), desk, "?")


async def test_what_is_no_question_is_told_of(desk):
    with pytest.raises(AssertionError, match="is not a known question"):
        await desk.ask(type("Odd", (), {"asked_of": "nobody"})())
