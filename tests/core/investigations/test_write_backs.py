"""Write-back of investigations as comments on incidents."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
import structlog
from sqlalchemy import text
from sqlalchemy.dialects import sqlite

from incident_rows import add_incidents
from tocsin import CredentialsRefused, Health, Provider, Refused, Tools, TryLater
from tocsin.incidents import MISCONFIGURED_RETRY, RETRY_DELAYS
from tocsin.investigations import create_session
from tocsin.investigations.write_backs import (
    WriteBackMetrics,
    WriteBackState,
    WriteBackWorker,
    find_write_back_incidents,
    list_write_backs,
    plan_write_backs,
    select_write_back_providers,
)
from tocsin.investigations.write_backs.repository import claim_write_back, select_due
from tocsin.investigations.write_backs.worker import LEASE
from tocsin.metrics import Metrics
from tocsin.model import Persona
from tocsin.store.sqlite import make_engine


class Siem(Provider):
    """Keeps comments by their keys, and fails as it is told."""

    def __init__(self, *arguments) -> None:
        super().__init__(*arguments)
        self.comments: dict[str, tuple[str, str]] = {}
        self.calls = 0
        self.entered = asyncio.Event()
        self.errors: list[BaseException] = []
        self.gate: asyncio.Event | None = None

    async def check(self):
        return Health(detail="")

    async def read(self, stream, position, until):
        return
        yield

    async def comment(self, external_id, text, key):
        self.calls += 1
        self.entered.set()
        if self.gate is not None:
            await self.gate.wait()
        if self.errors:
            raise self.errors.pop(0)
        self.comments.setdefault(key, (external_id, text))


class Mute(Siem):
    comment = Provider.comment


@pytest.fixture
def make_siem(clock):
    def make(kind=Siem, *, write_back=True, name="sensors") -> Siem:
        tools = Tools(name=name, http=None, clock=clock, log=structlog.get_logger())
        return kind(kind.Settings(plugin="siem", write_back=write_back), tools)

    return make


@pytest.fixture
def siem(make_siem) -> Siem:
    return make_siem()


@pytest.fixture
def node(database, clock, siem) -> WriteBackWorker:
    return WriteBackWorker(database, clock, {"sensors": siem})


@pytest.fixture
async def session_id(database, clock) -> str:
    members = {"persona": Persona.ANALYST, "provider": None, "by": "ana", "now": clock.now()}
    return await database.write(create_session, query="look", **members)


@pytest.fixture
def plan(database, clock, session_id):
    """Plan a comment at new incidents of a provider, and return their numbers."""

    async def plan(count=1, provider="sensors", *, run=1, words="It was nothing.") -> list[int]:
        def write(connection):
            numbers = add_incidents(connection, count, now=clock.now(), provider=provider)
            plan_write_backs(
                connection,
                session_id=session_id,
                run=run,
                text=words,
                incidents=find_write_back_incidents(connection, numbers, [provider]),
                now=clock.now(),
            )
            return numbers

        return await database.write(write)

    return plan


@pytest.fixture
def listed(database, session_id):
    async def listed():
        return await database.read(list_write_backs, session_id)

    return listed


async def test_a_summary_is_written_once_to_each_incident(node, siem, plan, listed, session_id):
    one, other = await plan(2)
    assert [await node.write_next("sensors") for _ in range(3)] == [True, True, False]
    keys = {f"tocsin:{session_id}:1:{number}" for number in (one, other)}
    assert siem.comments.keys() == keys
    assert {words for _, words in siem.comments.values()} == {"It was nothing."}
    assert {comment.state for comment in await listed()} == {WriteBackState.WRITTEN}
    assert all(comment.finished_at for comment in await listed())


async def test_what_was_planned_twice_is_written_once(database, node, siem, plan, listed):
    await plan()
    [planned] = await listed()
    again = {
        "session_id": planned.session_id,
        "run": planned.run,
        "text": "Another.",
        "incidents": [(planned.incident_number, planned.provider, planned.external_id)],
        "now": planned.created_at,
    }
    await database.write(plan_write_backs, **again)
    assert await listed() == [planned]
    await node.write_next("sensors")
    await database.write(plan_write_backs, **again)
    assert not await node.write_next("sensors")
    assert siem.calls == 1


async def test_each_run_writes_its_own(node, siem, plan, listed):
    await plan(run=1)
    await plan(run=2, words="More is known.")
    while await node.write_next("sensors"):
        pass
    assert len(siem.comments) == 2
    assert [comment.run for comment in await listed()] == [2, 1]


async def test_a_failure_is_tried_again_later_and_later(node, siem, plan, listed, clock):
    await plan()
    siem.errors = [TryLater("it is away")] * 2
    for pause in RETRY_DELAYS[:2]:
        assert not await node.write_next("sensors")
        [row] = await listed()
        assert (row.reason, row.due_at - clock.now()) == ("it is away", pause)
        assert not await node.write_next("sensors")
        clock.advance(seconds=pause.total_seconds())
    assert await node.write_next("sensors")
    assert siem.calls == 3
    [row] = await listed()
    assert (row.state, row.attempts, row.reason) == ("written", 2, None)


async def test_a_plugin_that_exits_costs_its_own_comment_alone(node, siem, plan, listed):
    await plan()
    siem.errors = [SystemExit("enough")]
    assert not await node.write_next("sensors")
    [row] = await listed()
    assert (row.state, row.reason) == (WriteBackState.PENDING, "SystemExit: enough")


async def test_after_the_last_wait_it_has_failed(node, siem, plan, listed, clock):
    await plan()
    siem.errors = [OSError("no route")] * 10
    for _ in range(10):
        await node.write_next("sensors")
        clock.advance(days=2)
    [row] = await listed()
    assert (row.state, row.reason) == (WriteBackState.FAILED, "OSError: no route")
    assert siem.calls == len(RETRY_DELAYS) + 1


async def test_a_delay_that_the_siem_asks_for_is_kept(node, siem, plan, listed, clock):
    await plan()
    siem.errors = [TryLater("busy", after=timedelta(hours=3))]
    await node.write_next("sensors")
    [row] = await listed()
    assert row.due_at - clock.now() == timedelta(hours=3)


async def test_what_is_refused_has_failed(node, siem, plan, listed):
    await plan()
    siem.errors = [Refused("there is no such incident")]
    assert not await node.write_next("sensors")
    [row] = await listed()
    assert (row.state, row.reason) == (WriteBackState.FAILED, "there is no such incident")
    assert row.attempts == 1


async def test_refused_credentials_wait_for_a_person(node, siem, plan, listed, clock):
    await plan()
    siem.errors = [CredentialsRefused("no permission")] * 10
    for _ in range(10):
        await node.write_next("sensors")
        [row] = await listed()
        assert row.due_at - clock.now() == MISCONFIGURED_RETRY
        clock.advance(hours=1)
    assert (row.attempts, row.failures) == (10, 0)
    siem.errors = [TryLater("it is away")]
    assert not await node.write_next("sensors")
    clock.advance(seconds=RETRY_DELAYS[0].total_seconds())
    assert await node.write_next("sensors")
    assert [comment.attempts for comment in await listed()] == [11]


async def test_a_siem_that_does_not_answer_is_given_up_in_time(database, clock, siem, plan, listed):
    await plan()
    siem.gate = asyncio.Event()
    node = WriteBackWorker(database, clock, {"sensors": siem}, timeout=timedelta(milliseconds=10))
    assert not await node.write_next("sensors")
    [row] = await listed()
    assert row.reason == "the SIEM did not respond in time"


async def test_a_node_that_dies_leaves_its_comment_to_another(database, clock, siem, node, plan):
    await plan()
    siem.gate = asyncio.Event()
    dying = asyncio.create_task(node.write_next("sensors"))
    await siem.entered.wait()
    dying.cancel()
    await asyncio.wait([dying])
    siem.gate = None
    other = WriteBackWorker(database, clock, {"sensors": siem})
    assert not await other.write_next("sensors")
    clock.advance(seconds=LEASE.total_seconds())
    assert await other.write_next("sensors")
    assert len(siem.comments) == 1


async def test_whoever_comes_back_too_late_changes_nothing(database, node, siem, plan, listed):
    await plan()
    siem.gate, siem.errors = asyncio.Event(), [Refused("no")]
    slow = asyncio.create_task(node.write_next("sensors"))
    await siem.entered.wait()
    late = siem.tools.clock.now() + LEASE
    other = await database.write(claim_write_back, "sensors", late, late + LEASE)
    siem.gate.set()
    assert not await slow
    assert await listed() == [other]


async def test_each_is_taken_by_one_of_several_nodes(database, clock, siem, plan):
    await plan(20)
    nodes = [WriteBackWorker(database, clock, {"sensors": siem}) for _ in range(4)]

    async def work(node):
        while await node.write_next("sensors"):
            pass

    await asyncio.gather(*map(work, nodes))
    for node in nodes:
        await work(node)
    assert siem.calls == len(siem.comments) == 20


async def test_one_provider_never_holds_up_another(database, clock, make_siem, plan):
    stuck, well = make_siem(name="stuck"), make_siem(name="well")
    stuck.gate, written = asyncio.Event(), asyncio.Event()
    await plan(provider="stuck")
    await plan(provider="well")

    class Watched(WriteBackMetrics):
        def count(self, provider, outcome, times=1):
            if times:
                assert (provider, outcome) == ("well", "written")
                written.set()

    node = WriteBackWorker(database, clock, {"stuck": stuck, "well": well}, Watched())
    running = asyncio.create_task(node.run())
    async with asyncio.timeout(10):
        await written.wait()
    running.cancel()
    await asyncio.wait([running])
    assert (len(stuck.comments), len(well.comments)) == (0, 1)


async def test_only_who_wants_comments_and_can_write_them_is_told(make_siem, database):
    providers = {
        "yes": make_siem(),
        "unwanted": make_siem(write_back=False),
        "mute": make_siem(Mute),
    }
    assert list(select_write_back_providers(providers)) == ["yes"]

    def told(connection):
        numbers = [add_incidents(connection, provider=name)[0] for name in providers]
        return numbers, find_write_back_incidents(
            connection, [*numbers, 999], select_write_back_providers(providers)
        )

    numbers, found = await database.write(told)
    assert [row[:2] for row in found] == [(numbers[0], "yes")]
    assert await database.read(find_write_back_incidents, [], ["yes"]) == ()


async def test_what_was_written_is_counted(database, clock, siem, plan):
    metrics = Metrics(clock)
    node = WriteBackWorker(database, clock, {"sensors": siem}, WriteBackMetrics(metrics))
    await plan(2)
    siem.errors = [Refused("no")]
    for _ in range(2):
        await node.write_next("sensors")
    told = (await metrics.expose()).decode()
    for outcome in ("written", "failed"):
        assert f'tocsin_write_backs_total{{outcome="{outcome}",provider="sensors"}} 1.0' in told
    assert 'tocsin_write_backs_total{outcome="later",provider="sensors"} 0.0' in told


def test_what_is_due_is_found_by_its_index(migrated_file, clock):
    engine = make_engine(migrated_file)
    compiled = select_due("sensors", clock.now()).compile(
        dialect=sqlite.dialect(paramstyle="named")
    )
    with engine.connect() as connection:
        asked = text(f"EXPLAIN QUERY PLAN {compiled}")
        rows = connection.execute(asked, dict.fromkeys(compiled.params, 1))
        steps = " | ".join(row.detail for row in rows)
    engine.dispose()
    assert "ix_write_backs_due (provider=? AND due_at<?)" in steps
    assert "TEMP B-TREE" not in steps
