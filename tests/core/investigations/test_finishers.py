"""Effects of a completed run on the graph, the search index and the SIEM."""

from __future__ import annotations

from dataclasses import replace

import pytest
import structlog
from sqlalchemy import func, insert, select

from delivery_rows import NOW
from incident_rows import add_incidents
from tocsin import Entity, EntityKind, Event, Health, Provider, Tools
from tocsin.events import load_unrouted
from tocsin.investigations import build_change_finisher, build_write_back_finisher
from tocsin.investigations.runs.finishers import MAX_RELATIONS
from tocsin.knowledge.graph import find_neighborhood
from tocsin.knowledge.search import search_documents
from tocsin.model import (
    FindEvents,
    FoundEvents,
    Marking,
    Node,
    NodeKind,
    Pap,
    Relation,
    RelationType,
    Tlp,
)
from tocsin.store.tables import destinations, relations, write_backs

from .conftest import EVERYWHERE

BAD, OURS = Entity(EntityKind.IP, "203.0.113.9"), Entity(EntityKind.HOST, "web-1")


async def test_every_edge_says_which_step_or_finding_it_is_known_from(start, finish, database):
    session_id = await start()
    await finish()
    source = f"session:{session_id}"
    found = await database.read(find_neighborhood, Node(NodeKind.SESSION, session_id), depth=2)
    known_from = {(edge.type, edge.target.value): set(edge.known_from) for edge in found.edges}
    assert known_from[RelationType.EXAMINED, "7"] == {source}
    assert known_from[RelationType.FOUND, BAD.value] == {f"{source}#F1"}
    assert known_from[RelationType.FOUND, OURS.value] == {source}
    steps = {f"{source}#{number}" for number in (3, 4, 5)}
    assert known_from[RelationType.CONNECTED_TO, OURS.value] == steps


async def test_a_run_that_failed_leaves_nothing_in_the_graph(start, finish, database):
    session_id = await start("fail")
    await finish()
    node = Node(NodeKind.SESSION, session_id)
    found = await database.read(find_neighborhood, node)
    assert found is None or not found.edges


async def test_a_session_is_found_by_what_was_asked_and_what_was_found(
    start, finish, database, send
):
    async def found(words: str) -> list[str]:
        page = await database.read(search_documents, words, limit=10, kinds=["session"])
        return [result.id for result in page.results]

    session_id = await start("odd logons")
    assert await found("logons") == [session_id]
    await finish()
    assert await found("ip:203.0.113.9 verdict:malicious") == [session_id]
    await send(session_id, "anything beaconing?")
    assert await found("beaconing") == await found("connection") == [session_id]


class Siem(Provider):
    """One that takes comments."""

    async def check(self):
        return Health(detail="")

    async def read(self, stream, position, until):
        return
        yield

    async def comment(self, external_id, text, key):
        """Nobody looks at it here."""


@pytest.fixture
def tell(finish, database, clock):
    async def tell(write_back: bool = True) -> list[tuple[int, str]]:
        """End what was started, and return what is to be written to which incident."""
        tools = Tools(name="sensors", http=None, clock=clock, log=structlog.get_logger())
        siem = Siem(Siem.Settings(plugin="siem", write_back=write_back), tools)
        await finish(
            finishers=[build_write_back_finisher({"sensors": siem}, "https://tocsin.example")]
        )
        query = select(write_backs.c.incident_number, write_backs.c.text)
        return await database.read(lambda c: [tuple(row) for row in c.execute(query)])

    return tell


@pytest.mark.parametrize("write_back", [True, False])
async def test_the_incidents_that_were_asked_about_are_told_where_that_is_wanted(
    start, tell, source, database, write_back
):
    await database.write(add_incidents, 8, provider="sensors")
    source.away = {question.asked_of for question in EVERYWHERE}
    for query in ("look at incident #7 and 8", "what came in the last 7 days?"):
        await start(query)
    planned = await tell(write_back)
    assert [number for number, _ in planned] == ([7] if write_back else [])
    assert all("It is bad" in text for _, text in planned)


async def test_what_another_provider_told_is_not_written_to_this_one(start, tell, database):
    await database.write(add_incidents, 8, provider="sensors")
    session_id = await start("look at incident #7")
    [(_, text)] = await tell()
    assert "Verdict: malicious" in text
    assert f"https://tocsin.example/investigations/{session_id}" in text
    assert "It is bad" not in text
    assert "#7" not in text


async def test_what_is_examined_of_another_provider_is_not_written_to_this_one(
    start, tell, source, database
):
    await database.write(add_incidents, 6, provider="secret")
    await database.write(add_incidents, 1, provider="sensors")
    source.away = {question.asked_of for question in EVERYWHERE}
    await start("look at incident #7 with 1")
    [(_, text)] = await tell()
    assert "It is bad" not in text


async def test_an_event_is_marked_as_its_provider_is_and_what_it_names_too(start, finish, database):
    session_id = await start()
    markings = {f"siem-{n}": Marking(Tlp.CLEAR, Pap.CLEAR) for n in range(2)}
    await finish(markings=markings | {"siem-2": Marking(Tlp.RED, Pap.GREEN)})
    found = await database.read(find_neighborhood, Node(NodeKind.SESSION, session_id), depth=2)
    marked = {edge.type: edge.marking for edge in found.edges}
    assert marked[RelationType.CONNECTED_TO] == Marking(Tlp.RED, Pap.GREEN)
    assert marked[RelationType.FOUND] == Marking(Tlp.RED, Pap.GREEN)
    assert marked[RelationType.EXAMINED] == Marking()


async def test_a_run_that_tells_very_much_leaves_the_first_of_it(start, finish, database, source):
    async def very_much(question):
        reply = await source(question)
        if not isinstance(question, FindEvents):
            return reply
        ends = (
            Entity(EntityKind.HOST, f"{question.provider}-{n}") for n in range(MAX_RELATIONS // 2)
        )
        told = (Relation(source=BAD, type=RelationType.CONNECTED_TO, target=end) for end in ends)
        [event] = reply.content.events
        event = replace(event, relations=tuple(told))
        return replace(reply, content=FoundEvents(events=(event,), complete=True))

    await start()
    await finish(answer=very_much)
    count = await database.read(lambda c: c.scalar(select(func.count()).select_from(relations)))
    assert count == MAX_RELATIONS


def follow(connection) -> None:
    members = {"name": "hook:o", "plugin": "o", "managed_by": "plugin", "state": "active"}
    counts = {"revision": 1, "failures": 0, "holds": 0}
    times = {"created_by": "ana", "created_at": NOW, "updated_at": NOW}
    hooks = {"settings": {"hooks": ["tocsin_investigation_finished"]}}
    connection.execute(insert(destinations).values(**members, **counts, **times, **hooks))


def load_finished(connection) -> list[Event]:
    return load_unrouted(connection, 10).events


@pytest.mark.parametrize("query", ["look around", "fail"])
async def test_the_end_of_each_run_is_emitted_once_to_those_that_follow(
    start, finish, send, database, query
):
    await database.write(follow)
    session_id = await start(query)
    has_failed = query == "fail"
    for _ in range(2):
        await finish(finishers=[build_change_finisher("https://t.example")])
    [event] = await database.read(load_finished)
    assert (event.event_type, event.subject) == ("investigation-finished", f"session:{session_id}")
    assert event.data["status"] == ("failed" if has_failed else "completed")
    assert (event.data["error"] is not None) is has_failed
    assert ("report" in event.context) is not has_failed
    if not has_failed:
        await send(session_id, "anything else?")
        await finish(finishers=[build_change_finisher("https://t.example")])
        assert [each.data["run"] for each in await database.read(load_finished)] == [1, 2]


async def test_nothing_is_emitted_if_nobody_follows(start, finish, database):
    await start()
    await finish(finishers=[build_change_finisher("https://t.example")])
    assert await database.read(load_finished) == []
