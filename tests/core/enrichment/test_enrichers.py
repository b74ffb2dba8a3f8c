"""What an enricher is asked, and what is made of its answers and failures."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from incident_rows import add_incidents
from tocsin import (
    Broken,
    CredentialsRefused,
    Enrichment,
    Entity,
    EntityKind,
    Marking,
    Pap,
    QueryOutcome,
    Refused,
    Relation,
    RelationType,
    Tlp,
    TryLater,
)
from tocsin.clock import SystemClock
from tocsin.enrichment import Enrichers, EnrichmentMeters
from tocsin.knowledge import find_markings
from tocsin.metrics import Metrics
from tocsin.observables import Environment

ONE, TWO, THREE, FOUR, FIVE = (Entity(EntityKind.IP, f"198.51.100.{n}") for n in range(1, 6))
FREE = Marking(Tlp.CLEAR, Pap.CLEAR)

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


async def test_only_entities_of_its_kinds_are_asked_for_each_once_and_in_their_order(make):
    enrichers, script = make(batch=10)
    script.tell(ONE)
    script.tell(TWO)
    user = Entity(EntityKind.USER, "alice")
    asked = await enrichers.ask("source", [TWO, user, ONE, TWO, THREE], FREE)
    assert [enrichment.entity for enrichment in asked.enrichments] == [TWO, ONE]
    assert (asked.outcome, asked.reason) == (QueryOutcome.ANSWERED, None)
    assert script.asked == [[TWO.value, ONE.value, THREE.value]]


async def test_it_is_asked_in_batches_of_its_size(make):
    enrichers, script = make(batch=2)
    await enrichers.ask("source", [ONE, TWO, THREE, FOUR, FIVE], FREE)
    assert sorted(map(len, script.asked)) == [1, 2, 2]


async def test_one_that_does_not_exist_is_refused(make):
    enrichers, _ = make()
    asked = await enrichers.ask("other", [ONE], FREE)
    assert asked.outcome is QueryOutcome.REFUSED


async def test_nothing_to_ask_for_is_answered_with_nothing(make):
    enrichers, script = make(online=True)
    asked = await enrichers.ask("source", [Entity(EntityKind.USER, "alice")], FREE)
    assert (asked.enrichments, asked.outcome) == ((), QueryOutcome.ANSWERED)
    assert not script.asked


@pytest.mark.parametrize(
    ("marking", "words"),
    [
        (Marking(Tlp.RED), "is marked TLP:RED, and this enricher accepts at most AMBER (max_tlp)"),
        (
            Marking(pap=Pap.RED),
            "is marked PAP:RED, and this enricher accepts at most AMBER (max_pap)",
        ),
    ],
)
async def test_what_is_marked_beyond_the_limits_is_refused_in_words_that_name_the_rule(
    make, marking, words
):
    enrichers, script = make(online=True)
    asked = await enrichers.ask("source", [ONE], marking)
    assert asked.outcome is QueryOutcome.REFUSED
    assert words in asked.reason
    assert not script.asked


async def test_one_that_asks_nobody_outside_is_asked_whatever_the_marking(make):
    enrichers, script = make()
    asked = await enrichers.ask(
        "source", [ONE, Entity(EntityKind.IP, "10.0.0.1")], Marking(Tlp.RED, Pap.RED)
    )
    assert asked.outcome is QueryOutcome.ANSWERED
    assert script.values == ["10.0.0.1", ONE.value]


async def test_what_is_internal_never_leaves_and_the_rest_is_answered(make):
    enrichers, script = make(online=True)
    script.tell(ONE)
    inside = Entity(EntityKind.IP, "10.0.0.1")
    asked = await enrichers.ask("source", [inside, ONE], FREE)
    assert [enrichment.entity for enrichment in asked.enrichments] == [ONE]
    assert asked.outcome is QueryOutcome.ANSWERED
    assert "internal" in asked.reason
    assert script.values == [ONE.value]


@pytest.mark.parametrize(
    "value",
    [
        "https://bob:hunter2@files.example/x",
        "https://hunter2@files.example/x",
        "bob:hunter2@files.example/x",
        "//bob:hunter2@files.example/x",
        "https:/bob:hunter2@files.example",
        "https:\\\\bob:hunter2@files.example/x",
        "https://bob%3Ahunter2%40files.example/x",
        "https://bob:hunter2@[::1/x",
        "https://files.example:hunter2/x",
    ],
)
async def test_a_url_with_a_login_or_that_cannot_be_read_never_leaves(make, value):
    enrichers, script = make(online=True)
    asked = await enrichers.ask("source", [Entity(EntityKind.URL, value)], FREE)
    assert asked.outcome is QueryOutcome.REFUSED
    assert "hunter2" not in asked.reason
    assert not script.asked


@pytest.mark.parametrize(
    "value", ["https://pages.example/@bob", "https://files.example:8443/?to=a@b.example"]
)
async def test_a_url_without_a_login_may_leave(make, value):
    enrichers, script = make(online=True)
    await enrichers.ask("source", [Entity(EntityKind.URL, value)], FREE)
    assert script.values == [value]


@pytest.mark.parametrize("provider", ["secret", "one that is gone"])
async def test_what_is_known_here_counts_whatever_the_caller_says(make, database, provider):
    enrichers, script = make(online=True, markings={"secret": Marking(Tlp.RED)})
    await database.write(add_incidents, provider=provider, entities=[(ONE.kind, ONE.value)])
    asked = await enrichers.ask("source", [ONE, TWO], FREE)
    assert "marked TLP:RED" in asked.reason
    assert script.values == [TWO.value]


async def test_what_an_enricher_relates_is_marked_as_the_entity_is(make, database):
    enrichers, script = make()
    link = Relation(source=ONE, type=RelationType.RESOLVES_TO, target=TWO)
    script.tell(ONE, relations=(link,))
    await enrichers.ask("source", [ONE], Marking(Tlp.RED))
    known = await database.read(find_markings, [TWO], {})
    assert known == {TWO: Marking(Tlp.RED)}


@pytest.mark.parametrize("value", ["no address", "", "x" * 3000, "nul\0"])
async def test_what_is_no_sound_value_is_asked_of_nobody(make, value):
    enrichers, script = make()
    asked = await enrichers.ask("source", [Entity(EntityKind.IP, value), ONE], FREE)
    assert asked.outcome is QueryOutcome.ANSWERED
    assert script.values == [ONE.value]


@pytest.mark.parametrize(
    ("error", "outcome", "reason"),
    [
        (TryLater("busy"), QueryOutcome.UNAVAILABLE, "busy"),
        (Broken("nonsense"), QueryOutcome.UNAVAILABLE, "nonsense"),
        (ZeroDivisionError("a secret"), QueryOutcome.UNAVAILABLE, "failed (ZeroDivisionError)"),
        (asyncio.CancelledError(), QueryOutcome.UNAVAILABLE, "failed (CancelledError)"),
        (SystemExit(1), QueryOutcome.UNAVAILABLE, "failed (SystemExit)"),
        (Refused("no"), QueryOutcome.REFUSED, "no"),
        (CredentialsRefused("bad key"), QueryOutcome.REFUSED, "bad key"),
    ],
)
async def test_each_failure_has_its_outcome_and_its_reason(make, error, outcome, reason):
    enrichers, script = make(online=True)
    script.errors[ONE.value] = error
    asked = await enrichers.ask("source", [ONE], FREE)
    assert (asked.outcome, asked.reason) == (outcome, reason)


async def test_a_failure_for_one_costs_only_that_one(make):
    enrichers, script = make()
    for entity in (ONE, THREE):
        script.tell(entity)
    script.errors[TWO.value] = Broken("nonsense")
    asked = await enrichers.ask("source", [ONE, TWO, THREE], FREE)
    assert [enrichment.entity for enrichment in asked.enrichments] == [ONE, THREE]
    assert (asked.outcome, asked.reason) == (QueryOutcome.ANSWERED, "nonsense")


async def test_one_that_fails_again_and_again_is_asked_no_more(make):
    enrichers, script = make(batch=1)
    many = [Entity(EntityKind.IP, f"198.51.100.{n}") for n in range(50)]
    script.errors = {entity.value: Broken("nonsense") for entity in many}
    asked = await enrichers.ask("source", many, FREE)
    assert asked.reason == "nonsense (50 entities)"
    assert len(script.asked) < 10


async def test_what_is_refused_costs_nobody_else_an_answer(make):
    enrichers, script = make(batch=1)
    refused = [Entity(EntityKind.IP, f"192.0.2.{n}") for n in range(10)]
    script.errors = {entity.value: Refused("malformed") for entity in refused}
    script.tell(THREE)
    asked = await enrichers.ask("source", [*refused, THREE], FREE)
    assert [enrichment.entity for enrichment in asked.enrichments] == [THREE]


async def test_what_takes_too_long_is_given_up(make):
    enrichers, _ = make(timeout=timedelta(milliseconds=20))
    asker = enrichers._askers["source"]

    async def forever(_):
        await asyncio.Event().wait()

    asker.enricher.enrich = forever
    asked = await enrichers.ask("source", [ONE], FREE)
    assert (asked.outcome, asked.reason) == (QueryOutcome.UNAVAILABLE, "no response within 0.02 s")


async def test_one_that_asks_for_a_pause_is_left_alone_until_then(make, clock):
    enrichers, script = make(online=True)
    script.errors[ONE.value] = TryLater("too many", after=timedelta(minutes=5), throttled=True)
    await enrichers.ask("source", [ONE], FREE)
    script.asked.clear()
    held = await enrichers.ask("source", [TWO], FREE)
    assert held.outcome is QueryOutcome.UNAVAILABLE
    assert "paused until 2026-11-21T12:05:00.000Z" in held.reason
    assert not script.asked
    clock.advance(minutes=5)
    await enrichers.ask("source", [TWO], FREE)
    assert script.values == [TWO.value]


async def test_one_that_is_throttled_without_saying_for_how_long_is_left_alone_a_minute(
    make, clock
):
    enrichers, script = make(online=True)
    script.errors[ONE.value] = TryLater("too many", throttled=True)
    await enrichers.ask("source", [ONE], FREE)
    clock.advance(seconds=59)
    assert (await enrichers.ask("source", [TWO], FREE)).outcome is QueryOutcome.UNAVAILABLE
    clock.advance(seconds=1)
    assert (await enrichers.ask("source", [TWO], FREE)).outcome is QueryOutcome.ANSWERED


async def test_no_more_are_asked_for_in_a_minute_than_the_settings_have_it(make, clock):
    enrichers, script = make(
        online=True, requests_per_minute=3, timeout=timedelta(seconds=10), cache_for="0s"
    )
    asked = await enrichers.ask("source", [ONE, TWO, THREE, FOUR], FREE)
    assert len(script.asked) == 3
    assert asked.reason == "the limit requests_per_minute (3) is reached"
    clock.advance(minutes=1)
    script.asked.clear()
    await enrichers.ask("source", [FOUR], FREE)
    assert script.values == [FOUR.value]


async def test_it_waits_for_its_turn_as_long_as_one_question_may_take(make, clock):
    enrichers, script = make(online=True, requests_per_minute=60, timeout=timedelta(seconds=20))
    many = [Entity(EntityKind.IP, f"203.0.113.{n}") for n in range(70)]
    asked = await enrichers.ask("source", many, FREE)
    assert (asked.outcome, asked.reason) == (QueryOutcome.ANSWERED, None)
    assert len(script.asked) == 70


async def test_the_rate_of_one_is_not_that_of_another(database, clock, make):
    from_conftest, _ = make(online=True, requests_per_minute=1)
    one = from_conftest._askers["source"].enricher
    enrichers = Enrichers({"a": one, "b": one}, Environment(), database, clock)
    assert (await enrichers.ask("a", [ONE], FREE)).outcome is QueryOutcome.ANSWERED
    assert (await enrichers.ask("b", [ONE], FREE)).outcome is QueryOutcome.ANSWERED
    assert (await enrichers.ask("a", [TWO], FREE)).outcome is QueryOutcome.UNAVAILABLE


async def test_what_was_not_asked_for_is_dropped(make):
    enrichers, script = make()
    script.returned = [Enrichment(entity=TWO, summary="unasked")]
    asked = await enrichers.ask("source", [ONE], FREE)
    assert asked.enrichments == ()


@pytest.mark.parametrize("returned", [7, "text", [None], [ONE]])
async def test_one_that_returns_something_else_has_failed(make, returned):
    enrichers, script = make()
    script.returned = returned
    asked = await enrichers.ask("source", [ONE], FREE)
    assert asked.outcome is QueryOutcome.UNAVAILABLE
    assert ".enrich` (" in asked.reason
    assert "conftest.py, line" in asked.reason


async def test_what_came_of_each_entity_is_counted(make, clock):
    metrics = Metrics(SystemClock())
    enrichers, script = make(online=True, meters=EnrichmentMeters(metrics))
    script.tell(ONE)
    await enrichers.ask("source", [ONE], FREE)
    await enrichers.ask("source", [ONE, TWO, Entity(EntityKind.IP, "10.1.1.1")], FREE)
    script.errors[THREE.value] = Broken("no")
    await enrichers.ask("source", [THREE], FREE)
    text = (await metrics.expose()).decode()
    for result in ("answered", "unknown", "cached", "refused", "failed"):
        assert f'tocsin_enrichments_total{{enricher="source",result="{result}"}} 1.0' in text


async def test_the_sources_are_named_in_order_with_their_kinds(database, clock, make):
    enrichers, _ = make(online=True)
    one = enrichers._askers["source"].enricher
    sources = Enrichers({"b": one, "a": one}, Environment(), database, clock).sources()
    assert [source.name for source in sources] == ["a", "b"]
    assert sources[0].kinds == (EntityKind.DOMAIN, EntityKind.IP, EntityKind.URL)
    assert sources[0].online
