"""Answers from stored incidents, the graph and search."""

from __future__ import annotations

from datetime import timedelta

import pytest

from incident_rows import add_incidents
from tocsin import Entity, EntityKind
from tocsin.events import Notifiers
from tocsin.investigations import HistoryAnswers
from tocsin.knowledge.search.indexer import SearchIndexer
from tocsin.model import (
    FindEntities,
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


async def test_entities_are_found_by_network_range_and_wildcard(database, clock):
    pairs = [("ip", f"198.51.100.{n}") for n in (1, 7, 200)]
    pairs += [("ip", value) for value in ("198.51.10.1", "2001:db8::7", "2001:db80::7")]
    pairs += [("host", value) for value in ("web-1", "web-2.corp.example", "db-1.corp.example")]
    pairs += [("user", "web-admin"), ("domain", "web-3.example")]
    now = clock.now()
    await database.write(add_incidents, now=now, occurred_at=now, entities=pairs)
    await SearchIndexer(database, clock, Notifiers()).catch_up()
    history = HistoryAnswers(database, {}, Environment())
    window = Window(now - timedelta(days=1), now + timedelta(days=1))
    earlier = Window(now - timedelta(days=9), now - timedelta(days=1))
    for pattern, kinds, expected in (
        ("198.51.100.0/24", (), {"198.51.100.1", "198.51.100.7", "198.51.100.200"}),
        ("198.51.100.2-198.51.100.199", (), {"198.51.100.7"}),
        ("2001:db8::/32", (), {"2001:db8::7"}),
        ("0.0.0.0/1", (), set()),
        ("web-*", (EntityKind.HOST,), {"web-1", "web-2.corp.example"}),
        ("*.corp.example", (EntityKind.HOST,), {"web-2.corp.example", "db-1.corp.example"}),
        ("web-*", (EntityKind.USER,), {"web-admin"}),
    ):
        reply = await history(FindEntities(pattern=pattern, kinds=kinds, window=window))
        assert {entity.value for entity in reply.content.entities} == expected, pattern
        assert reply.content.complete
        reply = await history(FindEntities(pattern=pattern, kinds=kinds, window=earlier))
        assert reply.content.entities == ()
    reply = await history(FindEntities(pattern="198.51.100.0/24", limit=2))
    assert (len(reply.content.entities), reply.content.complete) == (2, False)
    refused = await history(FindEntities(pattern="198.51.100.0/33"))
    assert refused.outcome is QueryOutcome.REFUSED
