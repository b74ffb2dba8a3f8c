"""Databases that are away, locked or full while deliveries are under way."""

from __future__ import annotations

import asyncio
import sqlite3

import aiohttp
import pytest
import structlog
from aiohttp import web
from sqlalchemy import select, update
from sqlalchemy.exc import OperationalError

from end_to_end.service import until
from tocsin.events import emit_events, retry_routing
from tocsin.identifiers import new_id
from tocsin.model import Event, EventType
from tocsin.store.tables import events

from .conftest import HastyClock, account, account_for
from .station import open_station

on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
on_postgresql = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)


@pytest.fixture
async def station(tmp_path, database, receiver):
    async with open_station(tmp_path, database, HastyClock()) as station:
        schedule = ["100ms"] * 3
        receiver.destination(retry_schedule=schedule)
        url = f"http://127.0.0.1:{receiver.port}/hook/soc"
        await station.add("soc", url, retry_schedule=schedule)
        yield station


@pytest.fixture
def hold(receiver):
    """What keeps every answer back until it is set; `arrivals` come in meanwhile."""
    goes_on = asyncio.Event()

    async def answer(_arrival, _request):
        await goes_on.wait()
        return web.Response(body=b"x" * 16_000)

    receiver.answers["soc"] = answer
    return goes_on


def execute(statement):
    """Return what executes a statement on a connection and gives its first value."""
    return lambda connection: connection.exec_driver_sql(statement).scalar()


async def until_failed(logs, what: str) -> None:
    await until(lambda: any(line["event"].startswith(f"{what} failed") for line in logs))


@on_sqlite
async def test_a_database_that_is_locked_for_too_long_loses_and_repeats_nothing(
    station, database, migrated_url, receiver, hold
):
    await database.write(execute("PRAGMA busy_timeout = 20"))
    await station.emit(30)
    await until(lambda: len(receiver.oracle.arrivals) == 8)
    with structlog.testing.capture_logs() as logs:
        other = sqlite3.connect(str(migrated_url.database), isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        hold.set()
        await until_failed(logs, "settling")
        with pytest.raises(OperationalError, match="locked"):
            await station.emit()
        other.execute("ROLLBACK")
        other.close()
    await account(database, receiver.oracle)
    assert (len(receiver.oracle.arrivals), receiver.oracle.repeats()) == (30, 0)


@on_sqlite
async def test_a_full_disk_loses_and_repeats_nothing(station, database, receiver, hold):
    await station.emit(30)
    await until(lambda: len(receiver.oracle.arrivals) == 8)
    pages = await database.read(execute("PRAGMA page_count"))
    with structlog.testing.capture_logs() as logs:
        await database.write(execute(f"PRAGMA max_page_count = {pages}"))
        hold.set()
        await until_failed(logs, "settling")
        with pytest.raises(OperationalError, match="full"):
            await station.emit(100)
        await database.write(execute("PRAGMA max_page_count = 1000000"))
    await account(database, receiver.oracle)
    assert (len(receiver.oracle.arrivals), receiver.oracle.repeats()) == (30, 0)


@pytest.mark.full
@on_postgresql
async def test_postgresql_restarted_under_load_loses_nothing(
    make_service, receiver, sensor, postgres
):
    soc = receiver.destination(retry_schedule=["100ms"] * 3)
    nodes = [make_service(soc) for _ in range(2)]

    async def answer(_arrival, _request):
        await asyncio.sleep(0.02)
        return web.Response(status=204)

    receiver.answers["soc"] = answer
    await nodes[0].start()
    await nodes[1].start(is_applied=True)
    sensor.write(400)
    await until(lambda: len(receiver.oracle.arrivals) > 50)
    await asyncio.to_thread(postgres.stop)
    await asyncio.to_thread(postgres.start)
    await until(lambda: len(receiver.oracle.accepted("soc")) == 400, seconds=100)
    assert receiver.oracle.repeats() == 0
    await account_for(nodes[0], receiver.oracle)
    assert [await node.stop() for node in nodes] == [0, 0]


@pytest.mark.full
@on_postgresql
async def test_events_before_the_first_apply_wait_and_are_reported(
    make_service, receiver, sensor, database
):
    await database.write(
        execute("DELETE FROM sequences WHERE name = 'configuration_applied_from' RETURNING 1")
    )
    node = make_service(receiver.destination(retry_schedule=["100ms"] * 3))
    await node.start(is_applied=True, waits=False)
    sensor.write(20)
    count = execute("SELECT count(*) FROM events")
    async with asyncio.timeout(20):
        while await database.read(count) < 20:  # noqa: ASYNC110 - asks a database
            await asyncio.sleep(0.05)
    status, out, _ = await node.command("prove")
    assert (status, out.count("UNACCOUNTED"), receiver.oracle.arrivals) == (1, 20, [])
    assert "no configuration has been applied yet" in node.log.read_text()
    async with aiohttp.ClientSession() as session:
        assert not await node.is_ready(session)
        assert (await node.command("apply"))[0] == 0
        await until(lambda: len(receiver.oracle.accepted("soc")) == 20)
        async with asyncio.timeout(20):
            while not await node.is_ready(session):  # noqa: ASYNC110 - asks a service
                await asyncio.sleep(0.05)
    await account_for(node, receiver.oracle)
    assert (await node.command("prove"))[0] == 0
    assert await node.stop() == 0


async def test_an_event_that_cannot_be_read_is_on_hold_and_stops_no_other(
    station, database, receiver
):
    def emit_unknown(connection) -> None:
        emit_events(connection, [broken])
        connection.execute(of_broken.values(event_type="of-a-later-version"))

    broken = Event(
        id=new_id("evt"),
        event_type=EventType.SCHEDULE_DISABLED,
        timestamp=station.clock.now(),
        data={},
        subject="schedule:1",
    )
    of_broken = update(events).where(events.c.id == broken.id)
    await database.write(emit_unknown)
    await station.emit(3)
    await until(lambda: len(receiver.oracle.accepted("soc")) == 3)
    held = select(events.c.routing_error).where(events.c.routed.is_(False))
    reasons = await database.read(lambda connection: connection.scalars(held).all())
    [reason] = reasons
    assert "the stored event cannot be read: 'of-a-later-version'" in reason

    await database.write(lambda c: c.execute(of_broken.values(event_type=broken.event_type)))
    assert await database.write(retry_routing) == 1
    station.wake()
    await until(lambda: len(receiver.oracle.accepted("soc")) == 4)
    await account(database, receiver.oracle)
