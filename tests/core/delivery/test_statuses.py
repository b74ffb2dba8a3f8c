"""Statuses of remote objects: when they are read, by whom, and what does not match."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from sqlalchemy import insert, select

from incident_rows import NOW, add_incidents, change_incident
from tocsin import CredentialsRefused, Health, ObjectChannel, RemoteStatus, StatusInterval, TryLater
from tocsin.accounting import Period, report_period, trace_incident
from tocsin.delivery.destinations.repository import DestinationState
from tocsin.delivery.statuses.mismatches import list_mismatches
from tocsin.delivery.statuses.reader import make_status_reader
from tocsin.store.tables import remote_objects, status_readers
from tocsin.testing import make_tools

from .conftest import add, alert, destination
from .test_queue import Queue

OPEN = RemoteStatus(status="To Do", is_open=True, version="1")
DONE = RemoteStatus(status="Done", is_open=False, resolution="Won't Do", version="2")
FIVE_MINUTES = timedelta(minutes=5)


class Board(ObjectChannel):
    """Reports the statuses in `statuses`, or raises `failure`."""

    class Settings(ObjectChannel.Settings):
        status_interval: StatusInterval = None

    status_batch = 2
    failure: BaseException | None = None

    def __init__(self, settings, tools) -> None:
        super().__init__(settings, tools)
        self.statuses: dict[str, RemoteStatus] = {}
        self.asked: list[list[str]] = []

    async def read_statuses(self, identifiers):
        self.asked.append([*identifiers])
        if self.failure is not None:
            raise self.failure
        return {name: self.statuses[name] for name in identifiers if name in self.statuses}

    def link(self, identifier):
        return f"https://board.example.com/{identifier}"

    async def check(self):
        return Health(detail="in memory")

    async def find(self, key):
        raise NotImplementedError

    is_open = list_notes = create = add_note = close = find


def make_board(clock, kind=Board, **settings) -> Board:
    given = {"plugin": "board", "url": "https://board.example.com", "status_interval": "5m"}
    return kind(kind.Settings(**given | settings), make_tools(None, "soc", clock))


@pytest.fixture
def board(clock) -> Board:
    return make_board(clock)


@pytest.fixture
async def reader(database, board):
    await add(database, destination("soc"))
    return make_status_reader(board, database, 1)


@pytest.fixture
def deliver(database, clock):
    """Deliver the alerts of incidents, whose objects get these IDs."""
    queue = Queue(database=database, clock=clock, queue=None)

    async def deliver(objects: dict[int | str, str], home: str = "https://board.example.com"):
        for subject, remote_id in objects.items():
            key = {"destination": "soc", "subject": str(subject), "remote_id": remote_id}
            if isinstance(subject, int):
                key["subject"] = f"incident:{subject}"
            row = key | {"home": home, "event_id": alert().id, "updated_at": queue.clock.now()}
            await database.write(lambda c, row=row: c.execute(insert(remote_objects).values(row)))

    return deliver


async def load(database, table=remote_objects):
    return await database.read(lambda c: c.execute(select(table)).mappings().all())


async def find_mismatches(database, **filters):
    found = await database.read(list_mismatches, limit=filters.pop("limit", 50), **filters)
    return [(each["incident_number"], each["mismatch"]) for each in found]


async def test_statuses_are_read_in_batches_and_again_when_due(reader, board, deliver, clock):
    await deliver({1: "A", 2: "B", 3: "C", "session:ses_1": "A"})
    board.statuses = dict.fromkeys("ABC", OPEN)
    for _ in range(5):
        await reader.read_next()
        clock.advance(seconds=1)
    assert sorted(name for batch in board.asked for name in batch) == ["A", "B", "C"]
    assert max(map(len, board.asked)) == 2
    clock.advance(minutes=5)
    assert await reader.read_next()
    assert len(board.asked[-1]) == 2


async def test_a_status_that_does_not_change_is_read_less_often(
    reader, board, deliver, database, clock
):
    await deliver({1: "A"})
    board.statuses = {"A": DONE}
    assert await reader.read_next()
    clock.advance(days=10)
    assert await reader.read_next()
    [row] = await load(database)
    assert (row["status"], row["resolution"], row["is_open"]) == ("Done", "Won't Do", False)
    assert row["status_changed_at"] == clock.now() - timedelta(days=10)
    assert row["status_due_at"] - clock.now() == timedelta(days=10) * 0.02
    clock.advance(days=300)
    await reader.read_next()
    [row] = await load(database)
    assert row["status_due_at"] - clock.now() == timedelta(days=1)
    clock.advance(days=1)
    board.statuses = {"A": OPEN}
    await reader.read_next()
    [row] = await load(database)
    assert (row["status_changed_at"], row["resolution"]) == (clock.now(), None)
    assert row["status_due_at"] - clock.now() == FIVE_MINUTES


async def test_failures_change_no_status_and_are_recorded(reader, board, deliver, database, clock):
    await deliver({1: "A"})
    board.statuses = {"A": OPEN}
    assert await reader.read_next()
    clock.advance(minutes=5)
    board.failure = TryLater("503: busy", after=timedelta(minutes=3))
    assert not await reader.read_next()
    clock.advance(minutes=2)
    assert not await reader.read_next()
    assert len(board.asked) == 2, "it does not ask before the receiver allows it"
    clock.advance(minutes=1)
    board.failure = CredentialsRefused("401: no")
    assert not await reader.read_next()
    [row] = await load(database, status_readers)
    assert (row["failures"], row["reason"], row["lease"]) == (2, "401: no", None)
    assert (row["failing_since"], row["due_at"]) == (NOW + FIVE_MINUTES, clock.now() + FIVE_MINUTES)
    [row] = await load(database)
    assert row["status"] == "To Do"
    board.failure = None
    clock.advance(minutes=5)
    assert await reader.read_next()
    [row] = await load(database, status_readers)
    assert (row["failures"], row["reason"], row["failing_since"]) == (0, None, None)


@pytest.mark.parametrize("result", [None, {"A": "To Do"}])
async def test_an_invalid_result_is_a_failure(reader, board, deliver, database, result):
    await deliver({1: "A"})

    async def read_statuses(_):
        return result

    board.read_statuses = read_statuses
    assert not await reader.read_next()
    [row] = await load(database, status_readers)
    assert "read_statuses" in row["reason"]


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
async def test_one_node_reads_a_destination_at_a_time(reader, board, deliver, database, clock):
    await deliver({1: "A"})
    other = make_status_reader(board, database, 2)
    here, begun, going_on = asyncio.Event(), asyncio.Event(), asyncio.Event()
    presence = asyncio.create_task(database.attend(1, lambda _: here.set()))
    await here.wait()

    async def read_statuses(_):
        begun.set()
        await going_on.wait()
        return {"A": OPEN}

    board.read_statuses = read_statuses
    reading = asyncio.create_task(reader.read_next())
    await begun.wait()
    assert not await other.read_next()
    going_on.set()
    assert await reading
    presence.cancel()
    await asyncio.wait([presence])


async def test_results_after_the_lease_are_not_stored(reader, board, deliver, database, clock):
    await deliver({1: "A"})

    async def read_statuses(_):
        clock.advance(minutes=2)
        await database.write(
            lambda c: c.execute(status_readers.update().values(lease="another node's"))
        )
        return {"A": OPEN}

    board.read_statuses = read_statuses
    assert not await reader.read_next()
    [row] = await load(database)
    assert row["status_read_at"] is None


@pytest.mark.parametrize("state", [DestinationState.PAUSED, DestinationState.DISABLED])
async def test_a_stopped_destination_is_not_asked(reader, board, deliver, database, state):
    await deliver({1: "A"})
    await add(database, destination("soc", state=state))
    assert not await reader.read_next()
    assert board.asked == []


async def test_objects_of_another_tenant_are_not_asked_for(reader, board, deliver):
    await deliver({1: "A"}, home="https://old.example.com")
    assert not await reader.read_next()
    assert board.asked == []


async def test_an_object_that_takes_the_place_of_another_is_read_at_once(
    reader, board, database, clock
):
    await database.write(add_incidents, 1)
    queue = Queue(_make_queue(database), database, clock)
    board.statuses = {"A": DONE, "B": OPEN}
    for remote_id, status in (("A", "Done"), ("A", "Done"), ("B", "To Do")):
        await queue.offer(alert(1))
        [claimed] = await queue.claim(tenant_key=board.tenant_key)
        await queue.queue.settle([queue.attempt(claimed, remote_id=remote_id)])
        await reader.read_next()
        [row] = await load(database)
        assert (row["remote_id"], row["status"]) == (remote_id, status)
        clock.advance(seconds=1)
    assert board.asked == [["A"], ["B"]]


def _make_queue(database):
    from tocsin.delivery.queue.queue import DeliveryQueue

    return DeliveryQueue(database, 1)


async def test_statuses_that_do_not_match_are_listed_traced_and_counted(
    reader, board, deliver, database, clock
):
    await database.write(add_incidents, 5)
    for number in (2, 4):
        await database.write(change_incident, number, now=NOW, status="Closed")
    await deliver({1: "A", 2: "B", 3: "C", 4: "D", 5: "E"})
    board.statuses = {"A": DONE, "B": OPEN, "D": DONE, "E": OPEN}
    for _ in range(3):
        await reader.read_next()
        clock.advance(seconds=1)
    everything = [(3, "object-missing"), (2, "object-open"), (1, "object-closed")]
    assert await find_mismatches(database) == everything
    assert await find_mismatches(database, after=(3, "soc"), limit=1) == everything[1:2]
    assert await find_mismatches(database, kind="object-open") == everything[1:2]
    assert await find_mismatches(database, destination="other") == []
    trace = await database.read(trace_incident, 1)
    [shown] = trace["remote_objects"]
    assert (shown["mismatch"], shown["status"]) == ("object-closed", "Done")
    assert shown["remote_url"] == "https://board.example.com/A"
    now = clock.now()
    proof = await database.read(report_period, Period(now - timedelta(days=1), now), now)
    [summary] = proof["remote_statuses"]
    assert (summary["objects"], summary["mismatches"], summary["reason"]) == (5, 3, None)
    await database.write(change_incident, 1, now=NOW, status="Closed")
    assert await find_mismatches(database) == everything[:2]
    await add(database, destination("soc", state=DestinationState.DELETED))
    assert await find_mismatches(database) == []


def test_statuses_are_read_only_if_configured_and_supported(clock, database):
    assert make_status_reader(make_board(clock, status_interval=None), database, 1) is None
    board = make_board(clock)
    board.status_batch = 0
    assert make_status_reader(board, database, 1) is None


@pytest.mark.parametrize("interval", ["5s", "2d"])
def test_intervals_are_bounded(clock, interval):
    with pytest.raises(ValueError, match="status_interval"):
        make_board(clock, status_interval=interval)
