"""What was said is kept, and used as long as it is good."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import event, select, update

from tocsin import (
    Broken,
    Enrichment,
    Entity,
    EntityKind,
    Marking,
    QueryOutcome,
    Relation,
    RelationType,
    Tlp,
    TryLater,
)
from tocsin.enrichment.cache import (
    EnrichmentDifference,
    load_enrichments,
    look_up_enrichments,
    store_enrichments,
)
from tocsin.store.tables import enrichments, relation_sources, relations

ONE, TWO = (Entity(EntityKind.IP, f"198.51.100.{n}") for n in (1, 2))
DOMAIN = Entity(EntityKind.DOMAIN, "evil.example")
AMBER = Marking()


async def test_an_online_one_is_not_asked_again_while_its_answer_is_good(make, clock):
    enrichers, script = make(online=True, cache_for="1h")
    script.tell(ONE, score=80, tags=("a", "b"), facts={"n": 1.5, "list": [1, None, "x"]})
    first = await enrichers.ask("source", [ONE], AMBER)
    clock.advance(minutes=59)
    assert await enrichers.ask("source", [ONE], AMBER) == first
    assert len(script.asked) == 1
    clock.advance(minutes=1)
    await enrichers.ask("source", [ONE], AMBER)
    assert len(script.asked) == 2


async def test_that_nothing_is_known_is_remembered_as_well(make):
    enrichers, script = make(online=True)
    for _ in range(2):
        asked = await enrichers.ask("source", [ONE], AMBER)
        assert (asked.enrichments, asked.outcome) == ((), QueryOutcome.ANSWERED)
    assert len(script.asked) == 1


async def test_one_without_a_time_to_keep_is_always_asked(make):
    enrichers, script = make(online=True, cache_for="0s")
    for _ in range(2):
        await enrichers.ask("source", [ONE], AMBER)
    assert len(script.asked) == 2


async def test_one_that_asks_nobody_outside_is_always_asked(make):
    enrichers, script = make()
    script.tell(ONE)
    await enrichers.ask("source", [ONE], AMBER)
    script.tell(ONE, summary="Changed.")
    asked = await enrichers.ask("source", [ONE], AMBER)
    assert [enrichment.summary for enrichment in asked.enrichments] == ["Changed."]


async def test_an_expired_answer_is_used_with_its_date_while_the_source_is_away(make, clock):
    enrichers, script = make(online=True, cache_for="1h")
    script.tell(ONE)
    await enrichers.ask("source", [ONE], AMBER)
    clock.advance(hours=2)
    script.errors[ONE.value] = TryLater("it is away")
    asked = await enrichers.ask("source", [ONE], AMBER)
    assert asked.outcome is QueryOutcome.ANSWERED
    assert asked.reason == "it is away; using an earlier result"
    [known] = asked.enrichments
    assert known.summary == "Seen. (as of 2026-11-21T12:00:00.000Z)"
    assert "outdated" in known.tags


async def test_an_answer_that_is_long_expired_is_not_used(make, clock):
    enrichers, script = make(online=True, cache_for="1h")
    script.tell(ONE)
    await enrichers.ask("source", [ONE], AMBER)
    clock.advance(days=8)
    script.errors[ONE.value] = Broken("nonsense")
    assert (await enrichers.ask("source", [ONE], AMBER)).outcome is QueryOutcome.UNAVAILABLE


async def test_a_marking_that_forbids_asking_forbids_earlier_answers_too(make):
    enrichers, script = make(online=True)
    script.tell(ONE)
    await enrichers.ask("source", [ONE], AMBER)
    asked = await enrichers.ask("source", [ONE], Marking(Tlp.RED))
    assert (asked.enrichments, asked.outcome) == ((), QueryOutcome.REFUSED)


async def test_what_is_known_comes_back_as_it_was_said(make, database):
    enrichers, script = make(online=True)
    relation = Relation(source=DOMAIN, type=RelationType.RESOLVES_TO, target=ONE)
    script.tell(
        ONE,
        score=101,
        tags=("a", "a", ""),
        techniques=("t1059.001", "nonsense"),
        relations=(relation, relation),
        facts={"big": 1e16, "huge": 2**70, "nul": "a\0b", "half": "\ud800", "deep": [[[{"x": 1}]]]},
        link="javascript:alert(1)",
    )
    asked = await enrichers.ask("source", [ONE], AMBER)
    [said] = asked.enrichments
    kept = await database.read(look_up_enrichments, "source", [ONE, TWO])
    assert kept[ONE].enrichment == said
    assert list(kept) == [ONE]
    assert (said.score, said.tags, said.techniques) == (100, ("a",), ("T1059.001",))
    assert said.relations == (relation,)
    assert said.facts["nul"] == "a\ufffdb"
    assert said.link is None


async def test_facts_are_kept_as_far_as_there_is_room(make):
    enrichers, script = make()
    many = {f"n{number}": "x" * 1_900 for number in range(20)}
    script.tell(ONE, facts=many, summary="y" * 5_000)
    [known] = (await enrichers.ask("source", [ONE], AMBER)).enrichments
    assert list(known.facts) == list(many)[:8]
    assert len(known.summary) == 1_000


async def test_relations_go_into_the_graph_when_they_are_first_said(make, database, clock):
    enrichers, script = make()
    script.tell(
        DOMAIN,
        relations=(Relation(source=DOMAIN, type=RelationType.RESOLVES_TO, target=ONE),),
    )
    for _ in range(2):
        await enrichers.ask("source", [DOMAIN], AMBER)
        clock.advance(hours=1)
    found = await database.read(
        lambda c: c.execute(
            select(
                relations.c.source_value,
                relations.c.type,
                relations.c.target_value,
                relations.c.count,
                relation_sources.c.source,
            ).join(relation_sources)
        ).all()
    )
    assert [tuple(row) for row in found] == [
        (DOMAIN.value, "resolves-to", ONE.value, 1, "enricher:source")
    ]


async def test_what_is_different_is_told_from_what_is_the_same(database, clock):
    def say(summary):
        return Enrichment(entity=ONE, summary=summary)

    async def keep(answer):
        now = clock.now()
        return await database.write(
            store_enrichments, "source", {ONE: answer}, now, now + timedelta(days=1)
        )

    assert await keep(None) == {}
    assert await keep(say("a")) == {ONE: EnrichmentDifference.NEW}
    assert await keep(say("a")) == {ONE: EnrichmentDifference.SAME}
    assert await keep(say("b")) == {ONE: EnrichmentDifference.DIFFERENT}
    assert await keep(None) == {ONE: EnrichmentDifference.GONE}
    assert await keep(None) == {}


async def test_what_cannot_be_read_any_more_is_asked_for_again(make, database):
    enrichers, script = make(online=True)
    script.tell(ONE)
    await enrichers.ask("source", [ONE], AMBER)
    spoilt = update(enrichments).values(content={"disposition": "a word of the future"})
    await database.write(lambda connection: connection.execute(spoilt))
    asked = await enrichers.ask("source", [ONE], AMBER)
    assert [enrichment.summary for enrichment in asked.enrichments] == ["Seen."]
    assert len(script.asked) == 2


async def test_when_something_changed_is_kept_apart_from_when_it_was_asked(make, database, clock):
    enrichers, script = make(online=True, cache_for="1h")
    script.tell(ONE)
    began = clock.now()
    for _ in range(2):
        await enrichers.ask("source", [ONE], AMBER)
        clock.advance(hours=2)
    [kept] = (await database.read(look_up_enrichments, "source", [ONE])).values()
    assert (kept.changed_at, kept.fetched_at) == (began, began + timedelta(hours=2))


async def test_enrichments_of_several_enrichers_are_found_at_once(database, clock):
    for name, entity in (("one", ONE), ("two", ONE), ("two", DOMAIN), ("three", TWO)):
        known = {entity: Enrichment(entity=entity, summary=f"from {name}")}
        expires_at = clock.now() + timedelta(hours=1)
        await database.write(store_enrichments, name, known, clock.now(), expires_at)
    found = await database.read(load_enrichments, ["two", "one", "four"], [ONE, TWO, DOMAIN])
    assert {
        name: {entity: kept.enrichment.summary for entity, kept in cached.items()}
        for name, cached in found.items()
    } == {"two": {ONE: "from two", DOMAIN: "from two"}, "one": {ONE: "from one"}, "four": {}}


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_what_is_kept_is_found_by_the_primary_key(database):
    def plan(connection):
        said = []
        event.listen(connection, "before_cursor_execute", lambda *a: said.append((a[2], a[3])))
        load_enrichments(connection, ["source", "other"], [ONE, TWO, DOMAIN])
        return [
            row[3]
            for statement, parameters in list(said)
            for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
        ]

    steps = await database.read(plan)
    assert len(steps) == 2  # one for each kind, whatever the number of enrichers
    assert all("(enricher=? AND kind=? AND value=?)" in step for step in steps)
