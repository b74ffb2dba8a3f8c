"""Markings of entities from all their sources."""

from __future__ import annotations

import pytest

from incident_rows import NOW, add_incidents
from tocsin.knowledge import ObservedRelation, find_markings, record_relations
from tocsin.knowledge.search.indexer import index_batch
from tocsin.model import Entity, EntityKind, Marking, Node, Pap, RelationType, Tlp
from tocsin.store.tables import entity_providers

HUB = Entity(EntityKind.DOMAIN, "hub.example")
OTHER = Entity(EntityKind.IP, "203.0.113.9")
RED, CLEAR, GREEN = (
    Marking(Tlp.RED, Pap.RED),
    Marking(Tlp.CLEAR, Pap.CLEAR),
    Marking(Tlp.GREEN, Pap.GREEN),
)
MARKINGS = {"open": CLEAR, "green": GREEN, "secret": RED}


@pytest.fixture
def add(database):
    async def add(provider: str, count: int = 1) -> None:
        pairs = [("domain", HUB.value)]
        await database.write(add_incidents, count, provider=provider, entities=pairs)

    return add


@pytest.fixture
def known(database):
    async def known(*entities: Entity) -> dict[Entity, Marking]:
        return await database.read(find_markings, entities or (HUB,), MARKINGS)

    return known


@pytest.fixture
def index(database):
    async def index() -> None:
        while await database.write(index_batch):
            pass

    return index


@pytest.mark.parametrize("indexed", [True, False])
async def test_one_strict_incident_marks_an_entity_among_very_many(add, index, known, indexed):
    await add("secret")
    await add("open", 250)
    if indexed:
        await index()
        await index()  # and again changes nothing
    assert await known() == {HUB: RED}


async def test_what_comes_after_indexing_counts_at_once(add, index, known):
    await add("open")
    await index()
    assert await known() == {HUB: CLEAR}
    await add("green")
    assert await known() == {HUB: GREEN}


async def test_an_incident_of_a_provider_that_is_gone_is_red(add, known):
    await add("gone")
    assert await known() == {HUB: RED}


async def test_of_what_is_not_known_nothing_is_said(known):
    assert await known(HUB, OTHER) == {}


@pytest.mark.parametrize("marking", [Marking(Tlp.AMBER_STRICT), Marking(pap=Pap.RED), RED])
async def test_a_relation_beyond_amber_marks_both_its_ends(database, known, marking):
    ends = Node.of(HUB), RelationType.RESOLVES_TO, Node.of(OTHER)
    await database.write(record_relations, {"session:a#1": [ObservedRelation(*ends, NOW, marking)]})
    assert await known(HUB, OTHER) == {HUB: marking, OTHER: marking}


async def test_a_relation_within_amber_marks_nothing(database, known):
    ends = Node.of(HUB), RelationType.RESOLVES_TO, Node.of(OTHER)
    await database.write(record_relations, {"session:a#1": [ObservedRelation(*ends, NOW, GREEN)]})
    assert await known(HUB, OTHER) == {}


async def test_each_provider_of_an_entity_is_noted_once(database, add, index):
    for _ in range(2):
        await add("open", 3)
        await index()
    rows = await database.read(lambda c: c.execute(entity_providers.select()).all())
    assert [tuple(row) for row in rows] == [("domain", HUB.value, "open")]
