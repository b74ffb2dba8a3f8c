"""Sending again: one delivery, or many as a job that may be interrupted anywhere."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, event, update

from delivery_rows import NOW, add_delivery, add_destination, rows
from full_run import scale_examples
from tocsin.delivery.history.filters import DeliveryFilter
from tocsin.delivery.history.replay_runner import (
    NoSuchDeliveryError,
    NotReplayableError,
    ReplayRunner,
    replay_batch,
    replay_delivery,
)
from tocsin.delivery.history.replays import (
    cancel_replay,
    create_replay,
    list_replays,
    load_replay,
    measure_replay,
)
from tocsin.delivery.queue.states import REPLAYABLE_STATES, DeliveryState, queue_topic
from tocsin.events import Notifiers
from tocsin.store import open_database
from tocsin.store.sqlite import make_engine
from tocsin.store.tables import deliveries, metadata

LATER = NOW + timedelta(hours=1)


# One delivery


@pytest.mark.parametrize("state", ["dead", "delivered", "on_hold", "pending"])
async def test_a_delivery_in_any_state_is_made_due_on_a_new_schedule(database, state):
    id_ = await database.write(add_delivery, state, tried=4)
    assert await database.write(replay_delivery, id_, LATER) == "soc"
    row = (await database.read(rows))[id_]
    assert (row["state"], row["due_at"], row["finished_at"]) == ("pending", LATER, None)
    assert (row["attempts"], row["schedule_start"]) == (4, 4)


async def test_one_that_is_being_attempted_is_left_alone(database):
    id_ = await database.write(add_delivery, "pending", lease="lease_1", holder=1, due_at=LATER)
    before = await database.read(rows)
    with pytest.raises(NotReplayableError, match="an attempt is in progress"):
        await database.write(replay_delivery, id_, NOW)
    assert await database.read(rows) == before


async def test_a_lease_that_ran_out_holds_nothing_up(database):
    id_ = await database.write(add_delivery, "pending", lease="lease_1", holder=1, due_at=NOW)
    await database.write(replay_delivery, id_, NOW)
    assert (await database.read(rows))[id_]["lease"] is None


async def test_one_to_a_deleted_destination_is_refused(database):
    await database.write(add_destination, "soc", "deleted")
    id_ = await database.write(add_delivery)
    with pytest.raises(NotReplayableError, match="its destination soc was deleted"):
        await database.write(replay_delivery, id_, NOW)


async def test_one_that_is_not_there_is_said_to_be_none(database):
    with pytest.raises(NoSuchDeliveryError):
        await database.write(replay_delivery, "dlv_1", NOW)


# Many


def begin(connection: Connection, state: DeliveryState = DeliveryState.DEAD, **wanted) -> str:
    """Make a replay, and return its id."""
    extent = measure_replay(connection, state, DeliveryFilter(**wanted))
    return create_replay(connection, extent, "ana", NOW)["id"]


def sent_again(connection: Connection) -> set[str]:
    return {id_ for id_, row in rows(connection).items() if row["schedule_start"]}


async def finish(database, most: int = 500) -> list[int]:
    """Do what there is to replay, and return how much had been replayed after each batch."""
    done = []
    while batch := await database.write(replay_batch, LATER, most=most):
        done.append(batch.replayed)
    return done


@pytest.mark.parametrize("state", REPLAYABLE_STATES)
async def test_a_replay_is_of_what_rests_in_its_state(database, state):
    def add(connection):
        return {name: add_delivery(connection, name) for name in (*REPLAYABLE_STATES, "pending")}

    made = await database.write(add)
    replay = await database.write(begin, state)
    assert await finish(database) == [1]
    assert await database.read(sent_again) == {made[state]}
    shown = await database.read(load_replay, replay)
    assert (shown["state"], shown["total"], shown["replayed"]) == ("completed", 1, 1)
    assert shown["filter"]["state"] == state


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({}, {"old", "new", "other"}),
        ({"destination": "soc"}, {"old", "new"}),
        ({"since": NOW}, {"new", "other"}),
        ({"until": NOW}, {"old"}),
        ({"since": NOW, "until": NOW}, set()),
    ],
)
async def test_a_replay_is_of_what_matches_and_exists(database, wanted, expected):
    def add(connection):
        add_destination(connection)
        add_destination(connection, "gone", "deleted")
        add_delivery(connection, to="gone")
        return {
            "old": add_delivery(connection, at=NOW - timedelta(hours=1)),
            "new": add_delivery(connection),
            "other": add_delivery(connection, to="other"),
        }

    made = await database.write(add)
    replay = await database.write(begin, **wanted)
    await finish(database)
    assert await database.read(sent_again) == {made[name] for name in expected}
    assert (await database.read(load_replay, replay))["total"] == len(expected)


async def test_a_batch_is_bounded_and_the_next_goes_on_behind_it(database):
    def add(connection):
        add_destination(connection)
        for number in range(5):
            add_delivery(connection, to="other" if number % 2 else "soc")

    await database.write(add)
    await database.write(begin, destination="soc")
    assert await finish(database, most=2) == [1, 2, 3]


async def test_what_comes_to_rest_meanwhile_is_not_replayed(database):
    await database.write(add_delivery)
    waiting = await database.write(add_delivery, "pending")
    await database.write(add_delivery)
    await database.write(begin)
    values = {"state": "dead", "finished_at": LATER}
    dies = update(deliveries).where(deliveries.c.id == waiting).values(values)
    await database.write(lambda connection: connection.execute(dies) and None)
    later = await database.write(add_delivery)
    assert await finish(database) == [2]
    assert not {waiting, later} & await database.read(sent_again)


async def test_a_cancelled_replay_does_no_more_and_says_so(database):
    await database.write(lambda connection: [add_delivery(connection) for _ in range(4)])
    replay = await database.write(begin)
    await database.write(replay_batch, NOW, most=2)
    assert await database.write(cancel_replay, replay, LATER)
    assert not await database.write(cancel_replay, replay, LATER)
    assert await finish(database) == []
    shown = await database.read(load_replay, replay)
    assert (shown["state"], shown["replayed"]) == ("cancelled", 2)


async def test_replays_take_turns(database):
    await database.write(lambda connection: [add_delivery(connection) for _ in range(6)])
    first, second = await database.write(begin), await database.write(begin)
    turns = []
    for minute in range(4):
        now = NOW + timedelta(minutes=1 + minute)
        turns.append((await database.write(replay_batch, now, most=2)).replay_id)
    assert turns == [first, second, first, second]


async def test_replays_are_listed_by_pages(database):
    made = [await database.write(begin) for _ in range(3)]
    page = await database.read(list_replays, limit=2)
    rest = await database.read(list_replays, limit=2, before=page.next)
    assert [replay["id"] for replay in page.replays + rest.replays] == made[::-1]
    assert (page.total, rest.next) == (3, None)


async def test_nodes_that_replay_together_send_nothing_twice(database, migrated_url, clock):
    def add(connection):
        for _ in range(60):
            add_delivery(connection)

    await database.write(add)
    replay = await database.write(begin)
    other = open_database(migrated_url)

    async def work(of) -> Counter:
        done = Counter()
        while (await database.read(load_replay, replay))["state"] == "running":
            if batch := await of.write(replay_batch, LATER, most=7):
                done[batch.replayed] += 1
        return done

    done = sum(await asyncio.gather(*(work(one) for one in (database, other, other))), Counter())
    await other.close()
    assert (await database.read(load_replay, replay))["replayed"] == 60
    assert len(await database.read(sent_again)) == 60
    assert max(done.values()) == 1


async def test_the_loop_wakes_the_workers_of_what_it_sends_again(database, clock):
    await database.write(add_delivery)
    await database.write(begin)
    notifiers = Notifiers()
    replayer = ReplayRunner(database, clock, notifiers)
    assert await replayer.replay_waiting()
    async with asyncio.timeout(5):
        await notifiers[queue_topic("soc")].wait(timedelta(hours=1))
    assert not await replayer.replay_waiting()


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("state", "index"),
    [
        (DeliveryState.DEAD, "ix_deliveries_resting (state=? AND id>? AND id<?)"),
        (DeliveryState.DELIVERED, "sqlite_autoindex_deliveries_1 (id>? AND id<?)"),
    ],
)
async def test_a_batch_walks_on_from_where_the_one_before_ended(database, state, index):
    def plan(connection) -> list[str]:
        ran = []

        def note(_connection, _cursor, statement, parameters, _context, _many):
            ran.append((statement, parameters))

        event.listen(connection, "before_cursor_execute", note)
        replay_batch(connection, LATER)
        event.remove(connection, "before_cursor_execute", note)
        return [
            row[3]
            for statement, parameters in ran
            for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
        ]

    await database.write(add_delivery, state)
    await database.write(begin, state, since=NOW)
    steps = await database.write(plan)
    assert any(index in step for step in steps), steps
    of_deliveries = [step for step in steps if " deliveries" in step]
    assert all("id=?" in step or index in step for step in of_deliveries), steps


# Whatever happens in between


@dataclass
class World:
    """One replay, what it is to send again, and what it has."""

    connection: Connection
    replay: str
    expected: set[str]
    sent: Counter = field(default_factory=Counter)
    is_cancelled: bool = False

    def batch(self, most: int, *, killed: bool) -> None:
        """Do a batch, in a transaction whose end may never come."""
        before = rows(self.connection)
        transaction = self.connection.begin_nested()
        done = replay_batch(self.connection, NOW, most=most)
        assert not (done and self.is_cancelled)
        if killed:
            transaction.rollback()
            assert rows(self.connection) == before
            return
        transaction.commit()
        after = rows(self.connection)
        changed = {id_ for id_ in before if before[id_] != after[id_]}
        assert all(after[id_]["state"] == "pending" for id_ in changed)
        self.sent.update(changed)

    def die(self) -> None:
        """Have everything that waits fail for good, a little later than the replay was made."""
        waits = update(deliveries).where(deliveries.c.state == "pending")
        self.connection.execute(waits.values(state="dead", finished_at=LATER))

    def cancel(self) -> None:
        self.is_cancelled = cancel_replay(self.connection, self.replay, NOW) or self.is_cancelled


STEPS = st.one_of(
    st.tuples(st.just("batch"), st.integers(1, 4), st.booleans()),
    st.sampled_from([("die",), ("arrive",), ("cancel",)]),
)
ROWS = st.tuples(st.sampled_from(["dead", "on_hold", "delivered", "pending"]), st.booleans())


@settings(max_examples=scale_examples(60))
@given(
    st.lists(ROWS, max_size=10),
    st.sampled_from(REPLAYABLE_STATES),
    st.lists(STEPS, max_size=25),
)
def test_each_delivery_that_matches_is_replayed_once_whatever_happens(made, state, steps):
    with TemporaryDirectory() as folder:
        engine = make_engine(Path(folder) / "replays.db")
        with engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA synchronous = OFF")
            metadata.create_all(connection)
            connection.exec_driver_sql("BEGIN")
            interleave(connection, made, state, steps)
        engine.dispose()


def interleave(connection: Connection, made, state: DeliveryState, steps) -> None:
    add_destination(connection)
    ids = [
        (add_delivery(connection, at_rest, to="soc" if is_ours else "other"), at_rest, is_ours)
        for at_rest, is_ours in made
    ]
    expected = {id_ for id_, at_rest, is_ours in ids if is_ours and at_rest == state}
    world = World(connection, begin(connection, state, destination="soc"), expected)
    for step, *how in steps:
        if step == "batch":
            world.batch(how[0], killed=how[1])
        elif step == "arrive":
            add_delivery(connection, state)
        else:
            getattr(world, step)()
    assert set(world.sent) <= expected
    while not world.is_cancelled and load_replay(connection, world.replay)["state"] == "running":
        world.batch(3, killed=False)
    shown = load_replay(connection, world.replay)
    assert world.is_cancelled or set(world.sent) == expected
    assert all(times == 1 for times in world.sent.values())
    assert (shown["replayed"], shown["total"]) == (len(world.sent), len(expected))
