"""Indexer: incidents become searchable, and each change counts once."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import Connection, select

from tocsin.events import Notifiers
from tocsin.incidents.coverage.positions import StreamKey
from tocsin.incidents.storage.alerts import IncidentPolicy
from tocsin.incidents.storage.store import store_received
from tocsin.knowledge.search import search_documents, search_entities
from tocsin.knowledge.search.documents import tokenize_document
from tocsin.knowledge.search.indexer import (
    BATCH,
    INCIDENTS,
    MAX_SECONDS,
    MIN_BATCH,
    SearchIndexer,
    TimedBatch,
    adapt_batch,
    count_unindexed,
    index_batch,
    load_batch,
)
from tocsin.model import Alert, Entity, EntityKind, Incident, Page, Severity
from tocsin.store import open_database
from tocsin.store.tables import documents, entities

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
KEY = StreamKey("edge", "changed")
POLICY = IncidentPolicy("https://tocsin.example", quiet=True)


def incident(number: int, *values: str, hours: int = 0, **more) -> Incident:
    return Incident(
        **{
            "external_id": f"case-{number}",
            "title": f"Case {number}",
            "description": "A login from afar",
            "severity": Severity.LOW,
            "occurred_at": BEGIN + timedelta(hours=hours),
            "entities": tuple(Entity(EntityKind.IP, value) for value in values),
            **more,
        }
    )


async def store(database, *incidents: Incident) -> None:
    page = Page(next_position={}, incidents=incidents, records=len(incidents))
    await database.write(store_received, KEY, page, policy=POLICY, now=BEGIN)


def counted(connection: Connection) -> dict[str, tuple[int, int, int, int]]:
    hour = timedelta(hours=1)
    rows = connection.execute(select(entities)).mappings()
    return {
        row["value"]: (
            row["incident_count"],
            (row["first_seen"] - BEGIN) // hour,
            (row["last_seen"] - BEGIN) // hour,
            row["last_incident"],
        )
        for row in rows
    }


async def found(database, text: str) -> list[str]:
    page = await database.read(search_documents, text, limit=50)
    return [result.id for result in page.results]


@pytest.fixture
def indexer(database, clock) -> SearchIndexer:
    return SearchIndexer(database, clock, Notifiers())


async def test_an_incident_is_found_by_all_that_is_known_of_it(database, indexer):
    alert = Alert(
        external_id="1", title="Impossible travel", severity=Severity.LOW, occurred_at=BEGIN
    )
    await store(database, incident(1, "192.0.2.1", alerts=(alert,), techniques=("T1078",)))
    assert not await found(database, "login")
    assert await indexer.catch_up() == 1
    for text in ("login", "case", "ip:192.0.2.1", '"impossible travel"', "technique:T1078"):
        assert await found(database, f"{text} provider:edge severity:low status:new") == ["1"]
    assert await found(database, "id:case-1") == ["1"]


async def test_a_changed_incident_is_found_as_it_is_now(database, indexer):
    await store(database, incident(1, title="Before"))
    await indexer.catch_up()
    await store(database, incident(1, title="After", severity=Severity.HIGH))
    await indexer.catch_up()
    assert not await found(database, "title_before OR before")
    assert await found(database, "after severity:high") == ["1"]


async def test_an_entity_counts_once_in_each_incident(database, indexer):
    await store(database, incident(1, "192.0.2.1", hours=5), incident(2, "192.0.2.1", hours=7))
    await indexer.catch_up()
    await store(database, incident(1, "192.0.2.1", "192.0.2.2", hours=5, title="Again"))
    await store(database, incident(1, "192.0.2.1", hours=3))
    await store(database, incident(3, "192.0.2.2", hours=9))
    await indexer.catch_up()
    assert await database.read(counted) == {"192.0.2.1": (2, 3, 7, 2), "192.0.2.2": (2, 3, 9, 3)}


async def test_everything_is_indexed_however_many_changes_there_are_at_first(database, indexer):
    for start in range(0, 250, 50):
        await store(database, *(incident(n, "192.0.2.1") for n in range(start, start + 50)))
    assert await database.read(count_unindexed) == 250
    assert await indexer.catch_up() == 250
    assert await database.read(count_unindexed) == 0
    assert (await database.read(search_documents, "login", limit=1)).total == 250
    assert (await database.read(counted))["192.0.2.1"][0] == 250


async def test_nothing_is_counted_of_a_batch_that_was_interrupted(database, indexer):
    def index_and_fail(connection: Connection) -> None:
        index_batch(connection, 7)
        raise ConnectionError

    await store(database, *(incident(n, "192.0.2.1") for n in range(20)))
    for _ in range(3):
        with pytest.raises(ConnectionError):
            await database.write(index_and_fail)
        await database.write(index_batch, 6)
    await indexer.catch_up()
    assert await database.read(counted) == {"192.0.2.1": (20, 0, 0, 20)}
    assert (await database.read(search_documents, "login", limit=1)).total == 20


async def test_nodes_that_index_at_once_count_everything_once(database, migrated_url, clock):
    other = open_database(migrated_url)
    nodes = [SearchIndexer(each, clock, Notifiers()) for each in (database, other, database)]
    for start in range(0, 300, 100):
        await store(database, *(incident(n, "192.0.2.1") for n in range(start, start + 100)))
        changed = [incident(n, "192.0.2.2", title="Changed") for n in range(0, start, 3)]
        await asyncio.gather(*(node.catch_up() for node in nodes), store(database, *changed))
    await nodes[0].catch_up()
    await other.close()
    counts = await database.read(counted)
    assert {value: row[0] for value, row in counts.items()} == {"192.0.2.1": 300, "192.0.2.2": 67}
    assert len(await database.read(lambda c: c.execute(select(documents.c.id)).all())) == 300


async def test_a_batch_that_another_node_has_stored_is_not_stored_again(database, indexer):
    await store(database, *(incident(n, "192.0.2.1") for n in range(5)))
    batch = await database.read(load_batch, BATCH)
    late = await indexer._prepare(batch)
    assert await indexer.catch_up() == 5
    assert not await database.write(late.store)
    assert await database.read(counted) == {"192.0.2.1": (5, 0, 0, 5)}


async def test_others_write_and_read_while_incidents_are_prepared(database, indexer, monkeypatch):
    begun, may_go_on = threading.Event(), threading.Event()

    def tokenize(*arguments, **options):
        begun.set()
        assert may_go_on.wait(30)
        return tokenize_document(*arguments, **options)

    monkeypatch.setattr("tocsin.knowledge.search.indexer.tokenize_document", tokenize)
    await store(database, incident(1, "192.0.2.1"))
    indexing = asyncio.create_task(indexer.catch_up())
    assert await asyncio.to_thread(begun.wait, 30)
    await store(database, incident(2, "192.0.2.2"))
    assert await database.read(count_unindexed) == 2
    may_go_on.set()
    assert await indexing == 2


async def test_what_was_stored_before_indexing_began_to_be_noted_counts_too(database, indexer):
    def forget(connection: Connection) -> None:
        connection.exec_driver_sql("UPDATE incident_entities SET change = NULL")

    await store(database, incident(1, "192.0.2.1"))
    await database.write(forget)
    await indexer.catch_up()
    await store(database, incident(1, "192.0.2.2"))
    await indexer.catch_up()
    counts = await database.read(counted)
    assert {value: row[0] for value, row in counts.items()} == {"192.0.2.1": 1, "192.0.2.2": 1}


class Telling(SearchIndexer):
    """Says when it has indexed something."""

    def __init__(self, *arguments) -> None:
        super().__init__(*arguments)
        self.indexed = asyncio.Event()

    async def catch_up(self) -> int:
        done = await super().catch_up()
        if done:
            self.indexed.set()
        return done


class Outrun(SearchIndexer):
    """Another node stores the first batch before it does, and goes on while it sleeps once."""

    def __init__(self, other: SearchIndexer, database) -> None:
        super().__init__(database, self, Notifiers())
        self.other = other
        self.prepared: list[int] = []
        self.slept = 0

    async def _prepare(self, batch):
        self.prepared.append(len(batch.rows))
        if len(self.prepared) == 1:
            await self.other.catch_up()
        return await super()._prepare(batch)

    async def sleep(self, _duration: timedelta) -> None:
        self.slept += 1
        await store(self._database, incident(10 + self.slept))
        if self.slept == 1:
            await self.other.catch_up()


async def test_a_node_prepares_nothing_while_another_one_indexes(database, indexer):
    outrun = Outrun(indexer, database)
    await store(database, *(incident(n) for n in range(5)))
    running = asyncio.create_task(outrun.run())
    async with asyncio.timeout(30):
        while await database.read(count_unindexed) or outrun.slept < 3:  # noqa: ASYNC110 - asks a database
            await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert (outrun.prepared, outrun.slept) == ([5, 2], 3)


async def test_a_batch_takes_no_longer_than_others_may_wait():
    slow, quick = MAX_SECONDS * 1.1, MAX_SECONDS / 3
    assert adapt_batch(BATCH, TimedBatch(BATCH, slow)) == BATCH // 2
    assert adapt_batch(MIN_BATCH, TimedBatch(MIN_BATCH, slow)) == MIN_BATCH
    assert adapt_batch(20, TimedBatch(20, quick)) == 40
    assert adapt_batch(BATCH, TimedBatch(BATCH, quick)) == BATCH
    assert adapt_batch(20, TimedBatch(20, MAX_SECONDS * 0.8)) == 20


async def test_what_is_stored_is_soon_findable(database, clock):
    notifiers = Notifiers()
    indexer = Telling(database, clock, notifiers)
    running = asyncio.create_task(indexer.run())
    await store(database, incident(1))
    notifiers[INCIDENTS].notify()
    await asyncio.wait_for(indexer.indexed.wait(), 30)
    assert await found(database, "login") == ["1"]
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_entities_are_found_exactly_then_by_their_beginning_then_by_their_parts(
    database, indexer
):
    known = [
        Entity(EntityKind.DOMAIN, "evil.example"),
        Entity(EntityKind.DOMAIN, "mail.evil.example"),
        Entity(EntityKind.EMAIL, "x@evil.example"),
        Entity(EntityKind.USER, "Evil.Example.Corp"),
        Entity(EntityKind.FILE, "C:\\Temp\\evil.exe"),
        Entity(EntityKind.USER, "CORP\\ana"),
        Entity(EntityKind.DOMAIN, "bücher.example"),
        Entity(EntityKind.URL, "https://bücher.example/x"),
        Entity(EntityKind.IP, "2001:db8::7"),
    ]
    await store(
        database,
        *(incident(n, entities=tuple(known)) for n in range(2)),
        incident(5, entities=(known[3], Entity(EntityKind.DOMAIN, "evil.example.net"))),
    )
    await indexer.catch_up()

    async def values(text: str, **more) -> list[str]:
        page = await database.read(search_entities, text, limit=50, **more)
        assert page.total == len(page.entities)
        return [entity.entity.value for entity in page.entities]

    assert await values("EVIL.example") == [
        "evil.example",
        "mail.evil.example",
        "x@evil.example",
        "Evil.Example.Corp",
        "evil.example.net",
    ]
    assert await values("evil.exe") == ["C:\\Temp\\evil.exe"]
    assert await values("ana") == ["CORP\\ana"]
    assert await values("evil[.]example", kinds=[EntityKind.EMAIL]) == ["x@evil.example"]
    assert await values("BÜCHER.example") == [
        "xn--bcher-kva.example",
        "https://bücher.example/x",
    ]
    assert await values("2001:0DB8:0::7") == ["2001:db8::7"]
    assert await values("nothing") == []
    assert await values("...") == []


async def test_pages_of_entities_follow_each_other_without_gap_or_double(database, indexer):
    for start in range(0, 450, 150):
        await store(
            database,
            *(
                incident(n, entities=(Entity(EntityKind.DOMAIN, f"a{n:03}.evil.example"),))
                for n in range(start, start + 150)
            ),
        )
    await indexer.catch_up()
    for text in ("a", "evil"):
        seen, after = [], None
        while True:
            page = await database.read(search_entities, text, limit=70, after=after)
            seen += [entity.entity.value for entity in page.entities]
            assert page.total == 450
            if (after := page.next) is None:
                break
        assert len(seen) == len(set(seen)) == 450
