"""Answers from stored incidents, the graph and search."""

from __future__ import annotations

from datetime import timedelta

import pytest

from incident_rows import add_incidents
from tocsin import Entity, EntityKind
from tocsin.investigations import HistoryAnswers
from tocsin.model import (
    FindIncidents,
    FindNeighbors,
    GetIncidents,
    GetSightings,
    ListIncidents,
    Marking,
    Pap,
    QueryOutcome,
    SearchHistory,
    Tlp,
    Window,
)
from tocsin.observables import Environment

UNKNOWN = Entity(EntityKind.IP, "203.0.113.9")
RED = Marking(Tlp.RED, Pap.RED)


@pytest.fixture
async def history(database, clock) -> HistoryAnswers:
    await database.write(add_incidents, 3, now=clock.now(), provider="edge")
    return HistoryAnswers(database, {"edge": RED}, Environment())


async def test_incidents_come_with_how_their_provider_is_marked(history):
    reply = await history(GetIncidents(numbers=(2, 99)))
    assert [(incident.number, incident.marking) for incident in reply.content] == [(2, RED)]


async def test_incidents_of_a_window_are_found(history, clock):
    window = Window(clock.now() - timedelta(days=365), clock.now() + timedelta(days=1))
    reply = await history(ListIncidents(window=window, provider="edge", limit=2))
    assert len(reply.content) == 2


async def test_an_entity_that_was_never_seen_is_an_answer(history):
    about = await history(FindIncidents(entities=(UNKNOWN,)))
    [seen] = (await history(GetSightings(entities=(UNKNOWN,)))).content
    around = await history(FindNeighbors(entity=UNKNOWN, depth=9))
    assert (about.content, seen.incident_count) == ((), 0)
    assert (around.content.nodes[0].value, around.content.edges) == (UNKNOWN.value, ())


async def test_words_that_the_search_does_not_understand_are_refused(history):
    assert (await history(SearchHistory(text="nothing"))).content == ()
    assert (await history(SearchHistory(text="severity:bad"))).outcome is QueryOutcome.REFUSED
