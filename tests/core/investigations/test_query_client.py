"""Query client of a run, and the ledger that it writes."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from datetime import timedelta

import pytest

from tocsin import Entity, EntityKind, SiemEvent
from tocsin.errors import InvestigationFailed
from tocsin.investigations import InvestigationMetrics, SourceReply
from tocsin.investigations.answers.reply import MAX_ANSWER_BYTES, shorten_content
from tocsin.investigations.runs.lease import claim_runs
from tocsin.investigations.runs.query_client import (
    MAX_CONCURRENT,
    MAX_CONCURRENT_PER_PROVIDER,
    SessionQueryClient,
)
from tocsin.investigations.runs.recorder import MAX_STEPS, LedgerRecorder
from tocsin.model import (
    Edge,
    FindEvents,
    FoundEvents,
    Neighborhood,
    Node,
    QueryOutcome,
    RelationType,
    SearchHistory,
    Window,
)

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
OURS = Entity(EntityKind.HOST, "web-1")


@pytest.fixture
def make_desk(database, start, clock):
    async def make(answer) -> SessionQueryClient:
        await start()
        [lease] = await database.write(claim_runs, 1, 1, clock.now())
        return SessionQueryClient(
            1, LedgerRecorder(database, lease, ()), answer, clock, InvestigationMetrics()
        )

    return make


class Crowd:
    """Counts how many are asked at the same time."""

    def __init__(self) -> None:
        self.now: dict[str, int] = {}
        self.most: dict[str, int] = {}
        self.most_at_all = 0

    async def __call__(self, question) -> SourceReply:
        source = question.asked_of
        self.now[source] = self.now.get(source, 0) + 1
        self.most[source] = max(self.most.get(source, 0), self.now[source])
        self.most_at_all = max(self.most_at_all, sum(self.now.values()))
        for _ in range(3):
            await asyncio.sleep(0)
        self.now[source] -= 1
        return SourceReply(QueryOutcome.UNAVAILABLE, reason="busy")


async def test_few_are_asked_at_once_and_fewer_of_one_provider(make_desk, clock):
    crowd = Crowd()
    client = await make_desk(crowd)
    window = Window(clock.now(), clock.now())
    to_provider = [
        FindEvents(provider="edge", entity=OURS, window=window, limit=n) for n in range(20)
    ]
    await client.ask_all([*to_provider, *(SearchHistory(text=str(n)) for n in range(50))])
    assert crowd.most_at_all == MAX_CONCURRENT
    assert crowd.most["provider:edge"] == MAX_CONCURRENT_PER_PROVIDER


async def test_answers_come_in_the_order_of_their_questions(make_desk):
    async def answer(question) -> SourceReply:
        for _ in range(10 - int(question.text)):
            await asyncio.sleep(0)
        return SourceReply(QueryOutcome.UNAVAILABLE, reason=question.text)

    client = await make_desk(answer)
    answers = await client.ask_all([SearchHistory(text=str(n)) for n in range(10)])
    assert [answer.reason for answer in answers] == [str(n) for n in range(10)]
    assert [answer.step for answer in answers] == [f"step:{n}" for n in range(1, 11)]


async def test_an_investigator_that_never_stops_asking_fails(make_desk):
    client = await make_desk(Crowd())
    with pytest.raises(InvestigationFailed, match="exceeds 2000 steps"):
        await client.ask_all([SearchHistory(text="x")] * (MAX_STEPS + 1))


async def test_time_is_that_of_the_last_step(make_desk, clock):
    async def answer(_) -> SourceReply:
        clock.advance(seconds=3)
        return SourceReply(QueryOutcome.UNAVAILABLE, reason="slow")

    client = await make_desk(answer)
    await client.ask(SearchHistory(text="x"))
    clock.advance(seconds=5)
    await client.conclude("so", ["step:1"])
    assert client.elapsed == timedelta(seconds=3)


async def test_what_cannot_be_kept_is_no_answer(make_desk):
    async def answer(_) -> SourceReply:
        return SourceReply(QueryOutcome.ANSWERED, ("half a \ud800 character",))

    client = await make_desk(answer)
    answered = await client.ask(SearchHistory(text="x"))
    assert (answered.outcome, answered.content) == (QueryOutcome.UNAVAILABLE, None)
    assert answered.reason == "the answer contains values that cannot be stored"


def event(number: int, clock) -> SiemEvent:
    moment = clock.now() + timedelta(seconds=number)
    return SiemEvent(external_id=str(number), occurred_at=moment, summary="x" * 10_000)


async def test_an_answer_that_is_too_long_is_cut_and_says_so(make_desk, clock):
    whole = FoundEvents(events=tuple(event(n, clock) for n in range(100)), complete=True)

    async def answer(_) -> SourceReply:
        return SourceReply(QueryOutcome.ANSWERED, whole)

    client = await make_desk(answer)
    window = Window(clock.now(), clock.now())
    answered = await client.ask(FindEvents(provider="edge", entity=OURS, window=window))
    kept = len(answered.content.events)
    assert 0 < kept <= MAX_ANSWER_BYTES // 10_000
    assert not answered.content.complete
    assert (
        answered.reason
        == f"only {kept} of 100 events are stored, because the size limit was reached"
    )


class Aside:
    """Notes whether it is written down by the thread of the event loop."""

    was_aside: bool | None = None

    def __str__(self) -> str:
        self.was_aside = threading.current_thread() is not threading.main_thread()
        return "x"


@pytest.mark.parametrize(("count", "is_aside"), [(1, False), (100, True)])
async def test_a_large_answer_is_encoded_while_others_go_on(make_desk, clock, count, is_aside):
    note = Aside()
    events = tuple(replace(event(n, clock), fields={"note": note}) for n in range(count))

    async def answer(_) -> SourceReply:
        return SourceReply(QueryOutcome.ANSWERED, FoundEvents(events=events, complete=True))

    client = await make_desk(answer)
    window = Window(clock.now(), clock.now())
    await client.ask(FindEvents(provider="edge", entity=OURS, window=window))
    assert note.was_aside is is_aside


async def test_a_part_of_the_graph_is_cut_to_its_nearest_edges(database, clock):
    nodes = [Node("host", f"{n}-{'x' * 2_000}") for n in range(1_000)]
    edges = [
        Edge(
            source=nodes[0],
            type=RelationType.CONNECTED_TO,
            target=node,
            first_seen=clock.now(),
            last_seen=clock.now(),
            count=1,
            known_from=(),
        )
        for node in nodes[1:]
    ]
    found = Neighborhood(nodes=tuple(nodes), edges=tuple(edges), complete=True)
    kept, words = shorten_content(found)
    assert not kept.complete
    assert 0 < len(kept.edges) < 300
    assert len(kept.nodes) == len(kept.edges) + 1
    assert words.startswith(f"only {len(kept.edges)} of 999 edges")
