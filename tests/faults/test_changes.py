"""Work in flight while its destination changes, its lease runs out, or it is replayed."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from aiohttp import web

from end_to_end.service import until
from tocsin.clock import SystemClock
from tocsin.delivery import NotReplayableError, load_destination, replay_delivery
from tocsin.delivery.destinations import lifecycle

from .conftest import account
from .station import open_station

NEW_SECRET = "whsec_" + "R0hJSktM" * 5


class MovableClock(SystemClock):
    """The machine's clock, and what was added to it."""

    def __init__(self) -> None:
        self._ahead = timedelta(0)

    def now(self) -> datetime:
        return super().now() + self._ahead

    def advance(self, **duration: float) -> None:
        self._ahead += timedelta(**duration)


@pytest.fixture
def make_station(tmp_path, database):
    return lambda: open_station(tmp_path, database, MovableClock())


@pytest.fixture
async def station(make_station):
    async with make_station() as station:
        yield station


@pytest.fixture
def add(station, receiver):
    """Adds the destination, one that delivers two at a time."""

    async def add(retry_schedule: tuple[str, ...] = ("100ms",) * 3) -> None:
        receiver.destination(retry_schedule=list(retry_schedule))
        url = f"http://127.0.0.1:{receiver.port}/hook/soc"
        await station.add("soc", url, retry_schedule=list(retry_schedule), concurrency=2)

    return add


@pytest.fixture
def begin(station, receiver, add):
    """Begins to deliver ten events; the first two get no answer until what this returns is set."""
    goes_on = asyncio.Event()

    async def answer(arrival, _request):
        if arrival in receiver.oracle.arrivals[:2]:
            await goes_on.wait()
        return web.Response(status=204)

    async def begin() -> asyncio.Event:
        receiver.answers["soc"] = answer
        await add()
        await station.emit(10)
        await until(lambda: len(receiver.oracle.arrivals) == 2)
        return goes_on

    return begin


@pytest.fixture
def change(station, database):
    """Changes the destination as `how` does, and lets the reading of it grow old."""

    async def change(how) -> None:
        def do(connection) -> None:
            found = load_destination(connection, "soc", lock=True)
            how(connection, found, station.clock.now())

        await database.write(do)
        station.clock.advance(seconds=1)
        station.wake()

    return change


async def until_nothing_is_leased(station) -> None:
    async with asyncio.timeout(20):
        while any(row["lease"] for row in await station.deliveries()):  # noqa: ASYNC110 - asks a database
            await asyncio.sleep(0.02)


async def states(station) -> list[tuple[str, str | None]]:
    return sorted((row["state"], row["reason"]) for row in await station.deliveries())


async def test_of_a_disabled_destination_what_is_under_way_ends_and_the_rest_waits(
    station, receiver, begin, change
):
    goes_on = await begin()
    await change(lifecycle.disable_destination)
    goes_on.set()
    await until_nothing_is_leased(station)
    assert await states(station) == [("delivered", None)] * 2 + [("pending", None)] * 8
    await change(lifecycle.resume_destination)
    await account(station.database, receiver.oracle)
    assert len(receiver.oracle.arrivals) == 10


async def test_of_a_deleted_destination_what_is_under_way_ends_and_the_rest_is_dead(
    station, receiver, begin, change
):
    goes_on = await begin()
    await change(lifecycle.delete_destination)
    goes_on.set()
    await until_nothing_is_leased(station)
    await station.database.write(
        lifecycle.expire_deliveries, station.clock.now()
    )  # as each node does every two seconds
    await account(station.database, receiver.oracle)
    buried = ("dead", "its destination was deleted")
    assert await states(station) == [buried] * 8 + [("delivered", None)] * 2
    assert len(receiver.oracle.arrivals) == 2


async def test_what_is_not_under_way_when_the_secret_changes_is_signed_with_the_new_one(
    station, receiver, begin, change, tmp_path
):
    goes_on = await begin()
    receiver.secret = NEW_SECRET
    (tmp_path / "new-secret").write_text(NEW_SECRET)

    def rotate(connection, found, now) -> None:
        settings = found.settings | {"secret": {"file": "new-secret"}}
        lifecycle.change_destination(connection, replace(found, settings=settings), now)

    await change(rotate)
    goes_on.set()
    await account(station.database, receiver.oracle)
    assert len(receiver.oracle.arrivals) == 10


async def test_of_two_workers_after_a_lease_ran_out_one_records_its_attempt(
    station, make_station, receiver, begin
):
    goes_on = await begin()
    receiver.oracle.breaks.append(datetime.now(UTC))
    async with make_station() as other:
        other.clock.advance(minutes=2)
        await until(lambda: len(receiver.oracle.accepted("soc")) == 10)
    receiver.oracle.breaks.append(datetime.now(UTC))
    goes_on.set()
    await station.finish()
    await account(station.database, receiver.oracle)
    assert [row["number"] for row in await station.attempts()] == [1] * 10
    # what was under way, and what was claimed with it unless that had noticed by then
    assert 2 <= receiver.oracle.repeats() <= 4


async def test_a_replay_during_a_retry_sends_it_at_once_and_not_twice(station, receiver, add):
    statuses, goes_on = [500], asyncio.Event()

    async def answer(_arrival, _request):
        if statuses:
            return web.Response(status=statuses.pop())
        await goes_on.wait()
        return web.Response(status=204)

    receiver.answers["soc"] = answer
    await add(retry_schedule=("1h",))
    await station.emit()
    await station.until_attempted()
    [waiting] = await station.deliveries()
    receiver.oracle.breaks.append(datetime.now(UTC))
    await station.database.write(replay_delivery, waiting["id"], station.clock.now())
    station.wake()
    await until(lambda: len(receiver.oracle.arrivals) == 2)
    with pytest.raises(NotReplayableError, match="an attempt is in progress"):
        await station.database.write(replay_delivery, waiting["id"], station.clock.now())
    goes_on.set()
    await account(station.database, receiver.oracle)
    assert [row["number"] for row in await station.attempts()] == [1, 2]
    assert receiver.oracle.repeats() == 0
