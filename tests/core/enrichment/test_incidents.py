"""Enriching an incident asks everybody for everything, and says what changed."""

from __future__ import annotations

import pytest

from incident_rows import add_incidents
from tocsin import Broken, Entity, EntityKind, Marking, QueryOutcome, Tlp
from tocsin.enrichment import Enrichers, EnrichmentDifference, IncidentEnricher
from tocsin.enrichment.incidents import MOST_ENTITIES
from tocsin.observables import Environment

from .conftest import make_source

OUTSIDE = Entity(EntityKind.IP, "198.51.100.7")
INSIDE = Entity(EntityKind.IP, "10.0.0.7")
DOMAIN = Entity(EntityKind.DOMAIN, "evil.example")
ENTITIES = [("ip", OUTSIDE.value), ("ip", INSIDE.value), ("domain", DOMAIN.value), ("user", "bob")]


@pytest.fixture
def sources(clock):
    """One that asks nobody outside, and one that does; each with its script."""
    return {"lists": make_source(clock), "vendor": make_source(clock, online=True)}


@pytest.fixture
def enriching(database, clock, sources) -> IncidentEnricher:
    made = {name: source for name, (source, _) in sources.items()}
    markings = {"sensors": Marking(), "secret": Marking(Tlp.RED)}
    enrichers = Enrichers(made, Environment(), database, clock, markings=markings)
    return IncidentEnricher(enrichers, database, markings)


@pytest.fixture
async def number(database) -> int:
    [number] = await database.write(add_incidents, entities=ENTITIES)
    return number


def told(changes):
    return [(change.entity.value, change.enricher, change.difference) for change in changes.changes]


async def test_of_an_incident_that_does_not_exist_there_is_nothing_to_say(enriching):
    assert await enriching.enrich(404) is None


async def test_what_each_says_of_each_is_told_by_entity_and_then_by_enricher(
    enriching, sources, number
):
    for _, script in sources.values():
        for entity in (OUTSIDE, DOMAIN):
            script.tell(entity)
    changes = await enriching.enrich(number)
    assert told(changes) == [
        (DOMAIN.value, "lists", EnrichmentDifference.NEW),
        (DOMAIN.value, "vendor", EnrichmentDifference.NEW),
        (OUTSIDE.value, "lists", EnrichmentDifference.NEW),
        (OUTSIDE.value, "vendor", EnrichmentDifference.NEW),
    ]
    assert [(each.entity, each.enricher, each.outcome) for each in changes.skipped] == [
        (INSIDE, "vendor", QueryOutcome.REFUSED)
    ]
    assert changes.failed == ()


async def test_a_second_time_says_what_is_different_and_what_is_gone(enriching, sources, number):
    [(_, lists), (_, vendor)] = sources.values()
    lists.tell(OUTSIDE)
    lists.tell(DOMAIN)
    vendor.tell(DOMAIN)
    await enriching.enrich(number)
    lists.tell(OUTSIDE, summary="Changed.")
    del lists.known[DOMAIN.value]
    changes = await enriching.enrich(number)
    assert told(changes) == [
        (DOMAIN.value, "lists", EnrichmentDifference.GONE),
        (DOMAIN.value, "vendor", EnrichmentDifference.SAME),
        (OUTSIDE.value, "lists", EnrichmentDifference.DIFFERENT),
    ]
    assert changes.changes[0].enrichment is None


async def test_once_more_with_nothing_new_says_the_same_twice(enriching, sources, number):
    for _, script in sources.values():
        script.tell(DOMAIN)
    await enriching.enrich(number)
    assert await enriching.enrich(number) == await enriching.enrich(number)


async def test_one_that_is_broken_costs_only_itself(enriching, sources, number):
    [(_, lists), (_, vendor)] = sources.values()
    lists.tell(DOMAIN)
    vendor.errors = {entity.value: Broken("nonsense") for entity in (OUTSIDE, DOMAIN)}
    changes = await enriching.enrich(number)
    assert told(changes) == [(DOMAIN.value, "lists", EnrichmentDifference.NEW)]
    assert [(each.entity, each.enricher, each.reason) for each in changes.failed] == [
        (DOMAIN, "vendor", "nonsense"),
        (OUTSIDE, "vendor", "nonsense"),
    ]


async def test_the_marking_is_that_of_the_incidents_provider(enriching, sources, database):
    [number] = await database.write(add_incidents, entities=ENTITIES, provider="secret")
    changes = await enriching.enrich(number)
    assert {each.reason for each in changes.skipped} == {
        "one of its sources is marked TLP:RED, and this enricher accepts at most AMBER (max_tlp)"
    }
    assert sources["vendor"][1].asked == []


async def test_of_very_many_entities_the_first_are_enriched_and_the_rest_counted(
    enriching, sources, database
):
    many = [("domain", f"d{n:04}.example") for n in range(MOST_ENTITIES + 3)]
    [number] = await database.write(add_incidents, entities=many)
    changes = await enriching.enrich(number)
    assert changes.passed_over == 3
    assert len(sources["lists"][1].values) == MOST_ENTITIES
