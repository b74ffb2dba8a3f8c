"""Services that are killed, at every kind of moment."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from random import Random
from time import monotonic

import pytest
from aiohttp import web

from end_to_end.service import until
from tocsin.delivery.sending.worker import AHEAD

from .conftest import account_for

CONCURRENCY = 8
IN_FLIGHT = CONCURRENCY * AHEAD
"""So much at most has one node claimed, and has to be repeated if it dies."""
TAKEN_OVER = timedelta(seconds=15)
"""Far less than the lease; an idle machine needs about five seconds."""


def by_seed(most: int) -> pytest.MarkDecorator:
    """One seed on SQLite in the ordinary run, `most` on both databases in the full one."""
    every = [(kind, seed) for seed in range(most) for kind in ("sqlite", "postgresql")]
    full = (pytest.param(*run, marks=pytest.mark.full) for run in every[1:])
    names = ("database_url", "seed")
    return pytest.mark.parametrize(names, [every[0], *full], indirect=["database_url"])


@pytest.fixture
def make_node(make_service, receiver):
    """Makes nodes that share one database and one destination."""
    soc = receiver.destination(retry_schedule=["100ms"] * 3, concurrency=CONCURRENCY)
    return lambda: make_service(soc)


@pytest.fixture
def kill(receiver):
    """Kills a service, and tells the oracle that what was under way may not have been recorded."""

    async def kill(service) -> None:
        await service.kill()
        receiver.oracle.breaks.append(datetime.now(UTC))

    return kill


@pytest.fixture
def hold(receiver):
    """Lets the receiver keep everyone waiting for an answer; to be set when it goes on."""
    goes_on = asyncio.Event()
    goes_on.set()
    goes_on.waiting = 0

    async def answer(_arrival, _request):
        goes_on.waiting += 1
        await goes_on.wait()
        goes_on.waiting -= 1
        await asyncio.sleep(0.02)
        return web.Response(status=204)

    receiver.answers["soc"] = answer
    return goes_on


async def start(*services) -> None:
    first, *others = services
    await first.start()
    await asyncio.gather(*(service.start(is_applied=True) for service in others))


async def all_accepted(receiver, sensor) -> None:
    await until(lambda: len(receiver.oracle.accepted("soc")) == sensor.written, seconds=60)


@by_seed(20)
@pytest.mark.full
async def test_a_kill_between_send_and_record_loses_nothing(
    make_node, receiver, sensor, kill, seed
):
    """On PostgreSQL another node takes the work up; on SQLite there is none until the restart."""
    chance = Random(seed)
    last, is_answered = chance.randrange(1, 50), chance.random() < 0.5
    first, second = make_node(), make_node()

    async def answer(_arrival, request):
        response = web.Response(status=204)
        if len(receiver.oracle.arrivals) == last:
            if is_answered:
                await response.prepare(request)
                await response.write_eof()
            await kill(first)
        return response

    receiver.answers["soc"] = answer
    await first.start()
    sensor.write(50)
    await until(lambda: bool(receiver.oracle.breaks))
    await second.start(is_applied=True)
    await all_accepted(receiver, sensor)
    assert receiver.oracle.repeats() <= IN_FLIGHT
    await account_for(second, receiver.oracle)


@by_seed(20)
@pytest.mark.full  # tests/end_to_end/test_spine.py kills a service in ordinary runs
async def test_kills_at_any_moment_lose_nothing(make_node, receiver, sensor, kill, seed):
    """The moments are anything: claims, commits and the start itself among them."""
    chance = Random(seed)
    service = make_node()
    sensor.write(50)
    await service.start()
    for _ in range(2):
        sensor.write(chance.randrange(100))
        await asyncio.sleep(chance.uniform(0, 0.5))
        await kill(service)
        await service.start(is_applied=True)
    await all_accepted(receiver, sensor)
    assert receiver.oracle.repeats() <= IN_FLIGHT * 2
    await account_for(service, receiver.oracle)


@pytest.mark.full
@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
async def test_three_nodes_double_nothing_and_take_up_the_work_of_one_that_is_killed(
    make_node, receiver, sensor, kill, hold
):
    nodes = [make_node() for _ in range(3)]
    await start(*nodes)
    sensor.write(300)
    await all_accepted(receiver, sensor)
    await account_for(nodes[0], receiver.oracle)
    assert len(receiver.oracle.arrivals) == 300
    assert [node for node in nodes if "delivered" not in node.log.read_text()] == []

    hold.clear()
    sensor.write(300)
    await until(lambda: hold.waiting == 3 * CONCURRENCY)
    await kill(nodes[1])
    hold.set()
    await all_accepted(receiver, sensor)
    await account_for(nodes[0], receiver.oracle)
    assert CONCURRENCY <= receiver.oracle.repeats() <= IN_FLIGHT
    since = datetime.now(UTC) - receiver.oracle.breaks[0]
    assert since < TAKEN_OVER
    status, _, errors = await nodes[2].command("prove", "--since", "1h", "--json")
    assert (status, errors) == (0, "everything is accounted for\n")


@pytest.mark.full  # tests/core/cli/test_stopping.py stops hasty nodes
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_node_stops_within_half_a_minute_while_a_receiver_hangs(
    make_service, receiver, sensor, hold
):
    """What was under way is released, and repeated by the next start."""
    soc = receiver.destination(retry_schedule=["100ms"] * 3, timeout="60s")
    service = make_service(soc)
    await service.start()
    hold.clear()
    sensor.write(20)
    await until(lambda: hold.waiting > 0)
    began = monotonic()
    assert await service.stop() == 0
    assert 15 < monotonic() - began < 30
    receiver.oracle.breaks.append(datetime.now(UTC))
    hold.set()
    await service.start(is_applied=True)
    await all_accepted(receiver, sensor)
    await account_for(service, receiver.oracle)
