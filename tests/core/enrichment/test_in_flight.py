"""What is being asked for is asked for once: who comes meanwhile waits for the same answer."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from incident_rows import add_incidents
from tocsin import Broken, Entity, EntityKind, Marking, QueryOutcome, Tlp
from tocsin.enrichment import Enrichers, IncidentEnricher
from tocsin.observables import Environment

from .conftest import make_source

ONE, TWO, THREE = (Entity(EntityKind.IP, f"198.51.100.{n}") for n in (1, 2, 3))
AMBER = Marking()

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@pytest.fixture
def slow(make):
    """Make enrichers of one source that answers when it is let go, and tells that it was asked."""

    def made(**options):
        enrichers, script = make(**{"online": True, **options})
        source = enrichers._askers["source"].enricher
        answer, asked, let_go = source.enrich, asyncio.Event(), asyncio.Event()

        async def enrich(entities):
            asked.set()
            await let_go.wait()
            return await answer(entities)

        source.enrich = enrich
        return enrichers, script, asked, let_go

    return made


async def begun(enrichers, entities):
    """Return a task that asks, once it has claimed what it asks for."""
    questions, claimed = enrichers._askers["source"].questions, asyncio.Event()
    take = questions.take

    def told(entity):
        claimed.set()
        return take(entity)

    questions.take = told
    task = asyncio.create_task(enrichers.ask("source", entities, AMBER))
    await claimed.wait()
    questions.take = take
    return task


async def test_several_at_once_are_one_question_and_all_have_its_answer(make):
    enrichers, script = make(online=True)
    script.tell(ONE)
    four = await asyncio.gather(*(enrichers.ask("source", [ONE], AMBER) for _ in range(4)))
    assert [[enrichment.summary for enrichment in asked.enrichments] for asked in four] == [
        ["Seen."]
    ] * 4
    assert script.asked == [[ONE.value]]


async def test_that_nothing_is_known_is_shared_too(make):
    enrichers, script = make(online=True)
    two = await asyncio.gather(*(enrichers.ask("source", [ONE], AMBER) for _ in range(2)))
    assert [(asked.enrichments, asked.outcome) for asked in two] == [
        ((), QueryOutcome.ANSWERED)
    ] * 2
    assert script.asked == [[ONE.value]]


async def test_a_failure_is_shared_by_those_who_waited_and_by_nobody_who_comes_later(slow):
    enrichers, script, asked, let_go = slow()
    script.errors[ONE.value] = Broken("nonsense")
    first = await begun(enrichers, [ONE])
    await asked.wait()
    second = await begun(enrichers, [ONE])
    let_go.set()
    for told in (await first, await second):
        assert (told.outcome, told.reason) == (QueryOutcome.UNAVAILABLE, "nonsense")
    assert script.asked == [[ONE.value]]
    script.errors.clear()
    assert (await enrichers.ask("source", [ONE], AMBER)).outcome is QueryOutcome.ANSWERED


async def test_of_several_only_those_are_asked_for_that_nobody_asks_for(make):
    enrichers, script = make(online=True, batch=2)
    for entity in (ONE, TWO, THREE):
        script.tell(entity)
    first, second = await asyncio.gather(
        enrichers.ask("source", [ONE, TWO], AMBER), enrichers.ask("source", [THREE, TWO], AMBER)
    )
    assert [enrichment.entity for enrichment in first.enrichments] == [ONE, TWO]
    assert [enrichment.entity for enrichment in second.enrichments] == [THREE, TWO]
    assert script.values == [ONE.value, TWO.value, THREE.value]


async def test_two_that_wait_for_each_other_both_end(make):
    enrichers, script = make(online=True)
    await asyncio.gather(
        enrichers.ask("source", [ONE, TWO], AMBER),
        enrichers.ask("source", [TWO, THREE], AMBER),
        enrichers.ask("source", [THREE, ONE], AMBER),
    )
    assert script.values == [ONE.value, TWO.value, THREE.value]


async def test_where_whoever_asked_gives_up_another_asks_and_the_rest_wait_for_that(slow):
    enrichers, script, asked, let_go = slow()
    script.tell(ONE)
    first = await begun(enrichers, [ONE])
    await asked.wait()
    others = [await begun(enrichers, [ONE]) for _ in range(3)]
    first.cancel()
    let_go.set()
    for other in others:
        assert [enrichment.entity for enrichment in (await other).enrichments] == [ONE]
    assert script.asked == [[ONE.value]]
    assert first.cancelled()


async def test_one_who_waits_and_gives_up_disturbs_nobody(slow):
    enrichers, script, asked, let_go = slow()
    script.tell(ONE)
    first = await begun(enrichers, [ONE])
    await asked.wait()
    waiting = await begun(enrichers, [ONE])
    waiting.cancel()
    await asyncio.wait([waiting])
    let_go.set()
    assert [enrichment.entity for enrichment in (await first).enrichments] == [ONE]
    assert script.asked == [[ONE.value]]


async def test_one_who_has_less_time_than_the_answer_takes_waits_no_longer(slow):
    enrichers, script, asked, let_go = slow()
    first = await begun(enrichers, [ONE])
    await asked.wait()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await enrichers.ask("source", [ONE], AMBER)
    let_go.set()
    assert (await first).outcome is QueryOutcome.ANSWERED
    assert script.asked == [[ONE.value]]


async def test_what_may_not_be_asked_is_not_learned_from_who_may(slow):
    enrichers, script, asked, let_go = slow()
    script.tell(ONE)
    first = await begun(enrichers, [ONE])
    await asked.wait()
    refused = await enrichers.ask("source", [ONE], Marking(Tlp.RED))
    assert (refused.enrichments, refused.outcome) == ((), QueryOutcome.REFUSED)
    let_go.set()
    assert (await first).enrichments


async def test_an_answer_that_is_not_kept_yet_is_handed_out(make):
    enrichers, script = make(online=True, cache_for=timedelta(0))
    script.tell(ONE)
    async with enrichers.gathering("source", [ONE], AMBER):
        asked = await enrichers.ask("source", [ONE], AMBER)
    assert [enrichment.entity for enrichment in asked.enrichments] == [ONE]
    assert script.asked == [[ONE.value]]


async def test_when_nobody_asks_any_more_nothing_is_left_behind(make):
    enrichers, script = make(online=True)
    script.errors[TWO.value] = Broken("nonsense")
    for _ in range(2):
        await enrichers.ask("source", [ONE, TWO], AMBER)
    assert enrichers._askers["source"].questions._open == {}
    assert script.values == [ONE.value, TWO.value, TWO.value]


async def test_one_that_asks_nobody_outside_is_asked_by_each(make):
    enrichers, script = make()
    await asyncio.gather(*(enrichers.ask("source", [ONE], AMBER) for _ in range(2)))
    assert script.asked == [[ONE.value]] * 2


async def test_an_incident_enriched_twice_at_once_is_one_question(database, clock):
    [number] = await database.write(add_incidents, entities=[("ip", ONE.value)], provider="edge")
    source, script = make_source(clock, online=True)
    script.tell(ONE)
    markings = {"edge": AMBER}
    enrichers = Enrichers({"source": source}, Environment(), database, clock, markings=markings)
    enriching = IncidentEnricher(enrichers, database, markings)
    for changes in await asyncio.gather(enriching.enrich(number), enriching.enrich(number)):
        assert [change.entity for change in changes.changes] == [ONE]
    assert script.asked == [[ONE.value]]
