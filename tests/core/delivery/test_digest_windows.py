"""Deliveries that wait for others, for a channel that tells of several at once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
import structlog
from sqlalchemy import Connection, event

from tocsin import Tools, TryLater
from tocsin.delivery import StoredAttemptLog
from tocsin.delivery.health.rate_limiter import has_gathered, window_start

from .conftest import Obedient, add, alert, destination
from .test_worker import Desk, raising

HOUR = timedelta(hours=1)


class Gathering(Obedient):
    gathering = HOUR


@pytest.fixture
async def desk(database, clock):
    clock.advance(minutes=10)
    await add(database, destination())
    tools = Tools(name="soc", http=None, clock=clock, log=structlog.get_logger())
    return Desk(Gathering(Gathering.Settings(plugin="obedient"), tools), database, clock)


def numbers(desk) -> list[int]:
    return [delivery.event.data["incident_number"] for delivery in desk.channel.deliveries]


async def test_what_comes_within_a_stretch_is_handed_over_when_it_ends(desk, store, clock):
    await store(alert(1))
    await desk.work()
    clock.advance(minutes=49, seconds=59)
    await store(alert(2))
    await desk.work()
    assert numbers(desk) == []
    assert await desk.state() == ("pending", 0)
    clock.advance(seconds=1)
    await store(alert(3))  # comes in time to go with them
    await desk.work()
    assert sorted(numbers(desk)) == [1, 2, 3]
    await store(alert(4))
    await desk.work()
    assert len(numbers(desk)) == 3


async def test_a_node_that_was_away_at_the_end_of_a_stretch_hands_over_at_once(desk, store, clock):
    await store(alert(1))
    await desk.work()
    clock.advance(minutes=73)
    desk.hire(destination())  # one that remembers nothing
    await desk.work()
    assert numbers(desk) == [1]


async def test_retries_wait_for_each_other_for_a_minute_and_no_longer(desk, store, clock):
    desk.channel.answer = raising(TryLater("busy"), TryLater("busy"))
    await store(alert(1), alert(2))
    await desk.work()
    clock.advance(minutes=50)
    await desk.work()
    assert len(numbers(desk)) == 2
    clock.advance(seconds=30)  # both are due
    await desk.work()
    assert len(numbers(desk)) == 2
    clock.advance(seconds=30)
    await desk.work()
    assert len(numbers(desk)) == 4
    assert await desk.unfinished() == 0


async def test_what_waits_is_not_held_back_by_what_failed(desk, store, clock):
    desk.channel.answer = raising(TryLater("busy"))
    await store(alert(1))
    await desk.work()
    clock.advance(minutes=50)
    await desk.work()
    await store(alert(2))
    clock.advance(minutes=1)
    await desk.work()  # what is sent anyway takes the other along
    assert sorted(numbers(desk)) == [1, 1, 2]


@pytest.mark.parametrize(
    ("now", "length", "begin"),
    [
        ((13, 59, 59), HOUR, (13, 0)),
        ((14, 0, 0), HOUR, (14, 0)),
        ((23, 30, 0), timedelta(hours=7), (21, 0)),
        ((6, 59, 0), timedelta(days=1), (0, 0)),
    ],
)
def test_stretches_are_counted_from_midnight(now, length, begin):
    moment = datetime(2026, 11, 21, *now, tzinfo=UTC)
    assert window_start(moment, length) == datetime(2026, 11, 21, *begin, tzinfo=UTC)


def plan(connection: Connection, now: datetime) -> str:
    """Return how the question is answered."""
    asked = []

    def note(_connection, _cursor, statement, parameters, _context, _many):
        asked.append((statement, parameters))

    event.listen(connection, "before_cursor_execute", note)
    try:
        has_gathered(connection, "soc", now, HOUR)
    finally:
        event.remove(connection, "before_cursor_execute", note)
    [(statement, parameters)] = asked
    steps = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
    return " | ".join(row[3] for row in steps)


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_asking_whether_it_is_time_goes_by_an_index(database, clock):
    steps = await database.read(plan, clock.now())
    assert "ix_deliveries_due (destination=? AND due_at<?)" in steps


async def test_a_channel_is_told_its_last_answer_until_the_delivery_arrives(desk, store, clock):
    log = StoredAttemptLog(desk.database)
    desk.channel.answer = raising(TryLater("busy", response=b"one has it"), TryLater("away"))
    await store(alert(1))
    await desk.work()
    clock.advance(minutes=50)
    await desk.work()
    [delivery] = desk.channel.deliveries
    assert await log.last_answer(delivery.id) == b"one has it"
    clock.advance(minutes=1)
    await desk.work()  # an attempt without an answer leaves the one before it
    assert await log.last_answer(delivery.id) == b"one has it"
    clock.advance(minutes=7)
    await desk.work()
    assert await desk.state() == ("delivered", 3)
    assert await log.last_answer(delivery.id) == b""
    assert await log.last_answer("dlv_unknown") == b""
