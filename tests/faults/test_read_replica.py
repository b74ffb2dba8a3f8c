"""Reads from a real replica that lags, is frozen, cancels, ends or is promoted."""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sqlalchemy import insert, make_url, select, text, update

from api_server import Api, open_api
from conftest import migrate
from incident_rows import add_incidents
from replication import replicating
from tocsin.clock import SystemClock
from tocsin.store import (
    Database,
    FallbackReason,
    ReadReplica,
    load_freshness,
    mark_write,
    open_database,
    record_heartbeat,
)
from tocsin.store.postgres import PostgresDatabase
from tocsin.store.tables import sequences
from tocsin.web.pagination import ChangeCursor

pytestmark = pytest.mark.full  # two servers
CALLERS = ("ana", "soar")
LAG = timedelta(seconds=3)


@pytest.fixture(scope="module")
def servers():
    # not below pytest's own folder, which it keeps for one user alone
    with tempfile.TemporaryDirectory(prefix="tocsin-replication-") as folder:
        Path(folder).chmod(0o755)
        with replicating(Path(folder)) as (primary, replica):
            migrate(make_url(primary.create("tocsin")))
            yield primary, replica


@pytest.fixture(autouse=True)
def _follow(request):
    """Have the replica follow again after a test that failed."""
    yield
    if "promoted" not in request.node.name:
        request.getfixturevalue("servers")[1].hold_back(False)


@dataclass
class Node:
    """What reads and writes as a node does."""

    number: int
    database: Database
    outcomes: list[FallbackReason | None] = field(default_factory=list)
    replica: ReadReplica | None = None

    async def open(self, url: str, stack: AsyncExitStack) -> None:
        replica = PostgresDatabase(make_url(url), is_replica=True)
        self.replica = ReadReplica(
            replica,
            self.database,
            SystemClock(),
            self.number,
            max_lag=LAG,
            count=self.outcomes.append,
        )
        stack.push_async_callback(self.database.close)
        stack.push_async_callback(self.replica.close)
        now = SystemClock().now()
        name = f"soc-{self.number}"
        await self.database.write(record_heartbeat, self.number, name, (), now, roles=["api"])

    async def write(self, caller: str) -> None:
        def write(connection):
            row = sequences.c.name == caller
            connection.execute(update(sequences).where(row).values(value=sequences.c.value + 1))
            mark_write(connection, caller)

        await self.database.write(write)

    async def read(self, caller: str) -> int:
        freshness = await self.database.read(load_freshness, caller)
        value, _ = await self.replica.read(freshness, lambda connection: load(connection, caller))
        return value


def load(connection, caller: str) -> int:
    return connection.scalar(select(sequences.c.value).where(sequences.c.name == caller))


def start(connection) -> None:
    for caller in CALLERS:
        found = connection.scalar(select(sequences.c.name).where(sequences.c.name == caller))
        if found is None:
            connection.execute(insert(sequences).values(name=caller, value=0))


async def open_nodes(servers, stack: AsyncExitStack) -> tuple[Node, Node]:
    primary, replica = servers
    nodes = tuple(Node(number, open_database(make_url(primary.dsn("tocsin")))) for number in (1, 2))
    for node in nodes:
        await node.open(replica.dsn("tocsin"), stack)
        await node.replica.measure()
    await nodes[0].database.write(start)
    return nodes


async def become_current(node: Node) -> None:
    """Return when the replica answers."""
    async with asyncio.timeout(20):
        while True:
            await node.replica.measure()
            await node.read("ana")
            if node.outcomes[-1] is None:
                return
            await asyncio.sleep(0.05)


_nodes = st.sampled_from((0, 1))
_steps = st.lists(
    st.one_of(
        st.tuples(st.just("write"), _nodes, st.sampled_from(CALLERS)),
        st.tuples(st.just("read"), _nodes, st.sampled_from(CALLERS)),
        st.tuples(st.just("measure"), _nodes, st.none()),
        st.tuples(st.sampled_from(("hold", "follow")), st.none(), st.none()),
    ),
    max_size=25,
)


def test_no_caller_reads_an_older_state_than_it_has_written(servers):
    answered: list[FallbackReason | None] = []

    async def play(steps) -> None:
        async with AsyncExitStack() as stack:
            nodes = await open_nodes(servers, stack)
            written = {caller: await nodes[0].database.read(load, caller) for caller in CALLERS}
            for what, node, caller in steps:
                match what:
                    case "write":
                        await nodes[node].write(caller)
                        written[caller] += 1
                    case "read":
                        assert await nodes[node].read(caller) == written[caller]
                    case "measure":
                        await nodes[node].replica.measure()
                    case "hold" | "follow":
                        await asyncio.to_thread(servers[1].hold_back, what == "hold")
            await asyncio.to_thread(servers[1].hold_back, False)
            answered.extend(outcome for node in nodes for outcome in node.outcomes)

    @settings(
        max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None
    )
    @given(_steps)
    @example([("hold", None, None), ("write", 0, "ana"), ("measure", 0, None), ("read", 0, "ana")])
    def follow(steps) -> None:
        asyncio.run(play(steps))

    follow()
    assert {None, FallbackReason.BEHIND} <= set(answered)


class Poller:
    """Reads what changes from any of the nodes, page by page."""

    def __init__(self, apis: list[Api], headers: dict[str, str], chance: random.Random) -> None:
        self._apis, self._headers, self._chance = apis, headers, chance
        self._query: dict[str, str] = {}
        self.numbers: list[int] = []
        self.positions: list[int] = []

    async def poll(self) -> int:
        """Return how many incidents the next page had; the first page only says where to begin."""
        query = {"limit": "2", "disposition": "none", **self._query}  # as only the handler answers
        client = self._chance.choice(self._apis).client
        response = await client.get("/api/v1/incidents", params=query, headers=self._headers)
        page = await response.json()
        assert response.status == 200, page
        following, resume = page["next_cursor"], page["resume_cursor"]
        is_first, self._query = not self._query, {"changed_after": resume}
        if is_first:
            return 0
        if following is not None:
            self._query = {"cursor": following}
        self.numbers.extend(each["number"] for each in page["incidents"])
        self.positions.append(ChangeCursor.decode(resume).change)
        return len(page["incidents"])


@pytest.mark.parametrize("seed", range(3))
async def test_a_poller_of_changes_misses_none_and_never_goes_back(servers, seed):
    chance, stored = random.Random(seed), []
    async with AsyncExitStack() as stack:
        nodes = await open_nodes(servers, stack)
        opened = (open_api(n.database, SystemClock(), replica=n.replica) for n in nodes)
        apis = [await stack.enter_async_context(each) for each in opened]
        poller = Poller(apis, await apis[0].reader(), chance)
        await poller.poll()
        for _ in range(60):
            match chance.choice(("store", "poll", "poll", "hold", "follow", "measure")):
                case "store":
                    stored += await nodes[0].database.write(add_incidents, chance.randint(1, 3))
                case "poll":
                    await poller.poll()
                case "measure":
                    await asyncio.gather(*(node.replica.measure() for node in nodes))
                case "hold" | "follow" as what:
                    await asyncio.to_thread(servers[1].hold_back, what == "hold")
        await asyncio.to_thread(servers[1].hold_back, False)
        await asyncio.gather(*map(become_current, nodes))
        while await poller.poll():
            pass
        assert poller.numbers == stored
        assert poller.positions == sorted(poller.positions)
        assert None in nodes[0].outcomes + nodes[1].outcomes


async def test_a_caller_reads_on_another_node_what_the_replica_does_not_have(servers):
    async with AsyncExitStack() as stack:
        nodes = await open_nodes(servers, stack)
        opened = (open_api(n.database, SystemClock(), replica=n.replica) for n in nodes)
        first, second = [await stack.enter_async_context(each) for each in opened]
        [number] = await nodes[0].database.write(add_incidents)
        writer, reader = await first.analyst(), await first.reader()
        await asyncio.gather(*map(become_current, nodes))
        await asyncio.to_thread(servers[1].hold_back)
        change = {"add_tags": ["held-back"]}
        path, found = f"/api/v1/incidents/{number}", "/api/v1/incidents?tag=held-back"
        response = await first.client.patch(path, json=change, headers=writer)
        assert response.status == 200, await response.text()
        pages = [
            await (await second.client.get(found, headers=headers)).json()
            for headers in (writer, reader)
        ]
        assert [len(page["incidents"]) for page in pages] == [1, 0]
        assert nodes[1].outcomes[-2:] == [FallbackReason.BEHIND, None]


@pytest.mark.parametrize("query", ["disposition=none", "sort=severity", "sort=occurred"])
async def test_a_page_that_continues_a_newer_one_comes_from_the_primary(servers, query):
    """Its last page names a change to resume from, which must not be newer than what it read."""
    async with AsyncExitStack() as stack:
        node, _ = await open_nodes(servers, stack)
        primary = await stack.enter_async_context(open_api(node.database, SystemClock()))
        replicated = await stack.enter_async_context(
            open_api(node.database, SystemClock(), replica=node.replica)
        )
        await node.database.write(add_incidents, 2)
        await become_current(node)
        await asyncio.to_thread(servers[1].hold_back)
        await node.database.write(add_incidents)
        path, headers = f"/api/v1/incidents?limit=1&{query}", await primary.reader()
        first = await (await primary.client.get(path, headers=headers)).json()
        path = f"{path}&cursor={first['next_cursor']}"
        await replicated.client.get(path, headers=headers)
        assert node.outcomes[-1] is FallbackReason.BEHIND


async def measure_reads(node: Node) -> float:
    """Return the seconds that several reads at once take."""
    begun = time.monotonic()
    await asyncio.gather(*(node.read("ana") for _ in range(5)))
    return time.monotonic() - begun


async def test_a_frozen_replica_delays_reads_once(servers, record_property):
    async with AsyncExitStack() as stack:
        node, _ = await open_nodes(servers, stack)
        await become_current(node)
        under_way = asyncio.create_task(
            node.replica.read(
                await node.database.read(load_freshness, "ana"),
                lambda connection: connection.scalar(text("SELECT pg_sleep(1)")),
            )
        )
        await asyncio.sleep(0.2)
        servers[1].freeze()
        try:
            seconds = [await measure_reads(node)]
            await under_way
            node.outcomes.clear()
            seconds.append(await measure_reads(node))
            assert set(node.outcomes) == {FallbackReason.UNREACHABLE}
        finally:
            servers[1].thaw()
        record_property("seconds of the first reads, and of later ones", seconds)
        await become_current(node)


async def test_a_replica_that_applies_late_is_not_used(servers):
    _, replica = servers
    async with AsyncExitStack() as stack:
        node, _ = await open_nodes(servers, stack)
        await become_current(node)
        for delay in ("1h", "0"):
            await asyncio.to_thread(
                replica.execute, f"ALTER SYSTEM SET recovery_min_apply_delay = '{delay}'"
            )
            await asyncio.to_thread(replica.reload)
            if delay == "0":
                break
            async with asyncio.timeout(20):
                while node.outcomes[-1] is not FallbackReason.LAGGING:
                    await node.replica.measure()
                    await node.read("ana")
                    await asyncio.sleep(0.2)
            assert node.replica.lag > LAG.total_seconds()
        await become_current(node)


async def test_a_read_that_the_replica_cancels_is_answered_by_the_primary(servers):
    _, replica = servers
    await asyncio.to_thread(replica.execute, "ALTER SYSTEM SET max_standby_streaming_delay = 0")
    await asyncio.to_thread(replica.reload)
    async with AsyncExitStack() as stack:
        node, _ = await open_nodes(servers, stack)
        await become_current(node)
        freshness = await node.database.read(load_freshness, "ana")
        seconds = "SELECT count(*) FROM quarantine, pg_sleep(:seconds)"

        def look(connection) -> int:
            is_replica = connection.scalar(text("SELECT pg_is_in_recovery()"))
            return connection.scalar(text(seconds), {"seconds": 10 if is_replica else 0})

        reading = asyncio.create_task(node.replica.read(freshness, look))
        await asyncio.sleep(0.5)
        await node.database.write(
            lambda connection: connection.execute(text("LOCK quarantine IN ACCESS EXCLUSIVE MODE"))
        )
        assert await asyncio.wait_for(reading, 8) == (0, None)
        assert node.outcomes[-1] is FallbackReason.CANCELED


async def test_a_replica_that_is_promoted_beside_its_primary_is_not_used(servers):
    """The last test of these servers, which no longer belong together afterwards."""
    async with AsyncExitStack() as stack:
        node, _ = await open_nodes(servers, stack)
        await become_current(node)
        await asyncio.to_thread(servers[1].promote)
        await node.write("ana")
        value = await node.database.read(load, "ana")
        async with asyncio.timeout(20):
            while node.outcomes[-1] is not FallbackReason.LAGGING:
                assert await node.read("ana") == value
                await node.replica.measure()
                await node.read("soar")
                await asyncio.sleep(0.2)
        await asyncio.to_thread(servers[1].stop)
        await node.replica.measure()
        assert await node.read("ana") == value
        assert node.outcomes[-1] is FallbackReason.UNREACHABLE
