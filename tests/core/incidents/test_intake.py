"""Pushes that an intake accepts are stored once each, and all of them."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager, suppress
from datetime import timedelta

import pytest
import structlog
from sqlalchemy import select

from api_server import PUSH_FORMAT, PUSH_TOKEN
from memory_intake import MemoryIntake
from tocsin import IntakePush, Tools
from tocsin.accounting import Period, report_period
from tocsin.events import Notifiers
from tocsin.fields import SettingsOrigin
from tocsin.hookspecs import PushRequest
from tocsin.incidents import LOST_PUSHES, PushInbox, SyncContext, list_coverage, list_quarantine
from tocsin.incidents.coverage import StalePosition
from tocsin.incidents.intake import reader as reader_module
from tocsin.incidents.intake.positions import acquire_intake_lease
from tocsin.incidents.metrics import SyncMeters
from tocsin.metrics import Metrics
from tocsin.store import DatabaseFault
from tocsin.store.faults import DatabaseFailure
from tocsin.store.tables import coverage, incidents, intake_positions
from tocsin.testing.conformance import IntakeConformance
from tocsin_connectors.siem.push import Push

from .conftest import PUBLIC_URL

NAME = "our-scripts"
LOST_TOTAL = f'tocsin_sync_lost_total{{provider="{NAME}"}}'.encode()
TOKEN = {"Authorization": f"Bearer {PUSH_TOKEN}"}


class TestMemoryIntake(IntakeConformance):
    intake = MemoryIntake

    @asynccontextmanager
    async def serve(self):
        self.made = MemoryIntake()
        yield {}

    @asynccontextmanager
    async def open(self, settings):
        yield self.made

    async def lose_stream(self):
        self.made.lose_stream()

    async def stop_servers(self):
        self.made.is_away = True


@pytest.fixture
def intake() -> MemoryIntake:
    return MemoryIntake()


@pytest.fixture
def provider(clock) -> Push:
    written = {"plugin": "push", "format": PUSH_FORMAT, "token": PUSH_TOKEN}
    settings = Push.Settings.model_validate(written, context=SettingsOrigin().context())
    return Push(settings, Tools(name=NAME, http=None, clock=clock, log=structlog.get_logger()))


@pytest.fixture
def metrics(clock) -> Metrics:
    return Metrics(clock)


@pytest.fixture
async def inbox(database, clock, provider, intake, metrics) -> PushInbox:
    await provider.start()
    context = SyncContext(database, clock, Notifiers(), PUBLIC_URL)
    return PushInbox([provider], context, SyncMeters(metrics).of, intake)


@pytest.fixture
async def reader(inbox, provider):
    reader = inbox._make_reader(provider)
    assert await reader._acquire()
    await reader.load()
    return reader


def case(number: int, **values) -> dict:
    return {"external_id": f"case-{number}", "title": "Odd sign-in", "severity": "High", **values}


def request(*cases: dict) -> PushRequest:
    return PushRequest(headers=TOKEN, body=json.dumps(cases).encode())


async def titles(database) -> dict[str, str]:
    query = select(incidents.c.external_id, incidents.c.title)
    return await database.read(lambda c: dict(map(tuple, c.execute(query))))


async def position(database) -> tuple[int, int]:
    query = select(intake_positions.c.stored, intake_positions.c.accepted)
    return tuple(await database.read(lambda c: c.execute(query).one()))


async def prove(database, clock) -> tuple[list[str], list[dict]]:
    """Return the kinds of what is not accounted for, and the pushes that wait."""
    period = Period(clock.now() - timedelta(hours=2), clock.now())
    report = await database.read(report_period, period, clock.now())
    kinds = [one["kind"] for one in report["unaccounted"]]
    return [kind for kind in kinds if kind.endswith("-push")], report["waiting_pushes"]


async def count_losses(metrics) -> int:
    """Return how many losses the metric counts that the alert is about."""
    [line] = [one for one in (await metrics.expose()).splitlines() if one.startswith(LOST_TOTAL)]
    return int(float(line.split()[-1]))


async def loss(database) -> str:
    """Return the reason of the recorded loss."""
    query = select(coverage.c.reason).where(coverage.c.outcome == LOST_PUSHES)
    return await database.read(lambda c: c.scalar(query))


async def test_what_is_accepted_is_stored_later_with_its_position(database, inbox, reader, intake):
    result = await inbox.take(NAME, request(case(1), case(2), {"title": "nameless"}))
    assert not result.is_stored
    assert (result.counts.records, result.counts.rejected) == (3, 1)
    assert await titles(database) == {}
    await reader.step()
    assert (await titles(database)).keys() == {"case-1", "case-2"}
    assert len((await database.read(list_quarantine, NAME, 10)).records) == 1
    assert intake.acknowledged[NAME].sequence == 1
    assert await position(database) == (1, 1)


async def test_pushes_without_a_time_happened_when_they_were_received(
    database, clock, inbox, reader
):
    received_at = clock.now()
    await inbox.take(NAME, request(case(1)))
    clock.advance(hours=5)
    await reader.step()
    occurred_at = select(incidents.c.occurred_at)
    assert await database.read(lambda c: c.scalar(occurred_at)) == received_at


async def test_what_the_intake_does_not_accept_is_stored_at_once(database, inbox, intake):
    intake.is_away = True
    assert (await inbox.take(NAME, request(case(1)))).is_stored
    intake.is_away = False
    large = request(case(2, description="x" * intake.max_bytes))
    assert (await inbox.take(NAME, large)).is_stored
    assert (await titles(database)).keys() == {"case-1", "case-2"}


async def test_a_reader_that_is_killed_before_the_acknowledgement_stores_nothing_twice(
    database, inbox, provider, reader, intake
):
    await inbox.take(NAME, request(case(1)))
    intake.acknowledge = None
    with pytest.raises(TypeError):
        await reader.step()
    del intake.acknowledge
    again = inbox._make_reader(provider)
    await again.load()
    await inbox.take(NAME, request(case(2)))
    await again.step()
    rows = await database.read(list_coverage, NAME, 10)
    assert sum(row["records"] for row in rows) == 2
    assert await position(database) == (2, 2)


async def test_a_reader_whose_position_was_advanced_by_another_stores_nothing(
    database, inbox, provider, reader
):
    await inbox.take(NAME, request(case(1)))
    other = inbox._make_reader(provider)
    await other.load()
    await reader.step()
    with structlog.testing.capture_logs() as logs, pytest.raises(StalePosition):
        await other.step()
    assert logs == []  # no error of the push, which is stored
    assert len((await database.read(list_quarantine, NAME, 10)).records) == 0
    assert sum(row["records"] for row in await database.read(list_coverage, NAME, 10)) == 1


async def test_a_restored_backup_stores_again_what_came_since(database, inbox, provider, reader):
    for number in range(3):
        await inbox.take(NAME, request(case(number)))
    await reader.step()

    rewind = intake_positions.update().values(stored=1, accepted=1)
    await database.write(lambda connection: connection.execute(rewind).close())
    restored = inbox._make_reader(provider)
    await restored.load()
    await restored.step()
    assert sum(row["records"] for row in await database.read(list_coverage, NAME, 10)) == 3 + 2
    assert await position(database) == (3, 3)


async def test_a_batch_that_fails_is_halved_and_the_push_that_always_fails_is_quarantined(
    database, clock, inbox, reader, monkeypatch
):
    store_batch = reader_module.store_batch
    sizes = []

    def refuse_one(connection, key, batch, **options):
        sizes.append(sum(len(each.incidents) for each in batch))
        if any(one.title == "bad" for each in batch for one in each.incidents):
            raise ValueError("bad")
        return store_batch(connection, key, batch, **options)

    monkeypatch.setattr(reader_module, "store_batch", refuse_one)
    for number in range(4):
        await inbox.take(NAME, request(case(number, title="bad" if number == 2 else "good")))
    await reader.step()
    assert (await titles(database)).keys() == {"case-0", "case-1", "case-3"}
    assert sizes == [4, 2, 2, 1, 1, 1, 0, 1]
    [kept] = (await database.read(list_quarantine, NAME, 10)).records
    assert "could not be stored" in kept["reason"]
    assert await position(database) == (4, 4)


async def test_a_database_that_is_away_quarantines_nothing(database, inbox, reader, monkeypatch):
    await inbox.take(NAME, request(case(1)))

    def fail(*_, **__):
        raise DatabaseFailure("gone", DatabaseFault.UNREACHABLE)

    monkeypatch.setattr(reader_module, "store_batch", fail)
    with pytest.raises(DatabaseFailure):
        await reader.step()
    monkeypatch.undo()
    await reader.step()
    assert (await titles(database)).keys() == {"case-1"}


async def test_pushes_that_wait_for_long_are_not_accounted_for(database, clock, inbox, reader):
    await inbox.take(NAME, request(case(0)))
    await reader.step()
    await inbox.take(NAME, request(case(1)))
    await inbox.flush()
    [waiting] = (await prove(database, clock))[1]
    assert (waiting["stored"], waiting["accepted"]) == (1, 2)
    assert (await prove(database, clock))[0] == []
    clock.advance(minutes=6)
    assert (await prove(database, clock))[0] == ["waiting-push"]
    await reader.step()
    assert await prove(database, clock) == ([], [])


async def test_a_reader_whose_intake_is_away_for_an_hour_leaves_its_lease_and_does_not_fail(
    database, clock, inbox, provider, intake
):
    await inbox.take(NAME, request(case(1)))
    intake.is_away = True
    reader = inbox._make_reader(provider)
    with structlog.testing.capture_logs() as logs:
        for _ in range(3):
            clock.advance(minutes=20)
            await reader._serve()  # a loop that raised would stall, and its node not be ready
        assert await database.write(acquire_intake_lease, NAME, 2, clock.now())
        intake.is_away = False
        reading = asyncio.create_task(reader._serve())  # node 2 is not present, so its lease ends
        async with asyncio.timeout(20):
            while len(logs) < 2:  # noqa: ASYNC110 - the log has no event
                await asyncio.sleep(0.01)
        reading.cancel()
        await asyncio.wait([reading])
    assert [line["event"] for line in logs] == [
        "intake cannot be read; its pushes wait",
        "intake is read again",
    ]
    assert (await titles(database)).keys() == {"case-1"}


async def test_a_reader_ends_also_if_its_intake_swallows_the_cancellation(
    inbox, provider, intake, monkeypatch
):
    entered, fetch = asyncio.Event(), intake.fetch

    async def fetch_to_the_end(*arguments):
        entered.set()
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0.05)
        return await fetch(*arguments)

    monkeypatch.setattr(intake, "fetch", fetch_to_the_end)
    reading = asyncio.create_task(inbox._make_reader(provider).run())
    await entered.wait()
    reading.cancel()
    await asyncio.wait([reading], timeout=10)
    assert reading.cancelled()


async def test_a_stream_that_is_lost_is_in_the_proof(database, clock, inbox, reader, metrics):
    await inbox.take(NAME, request(case(0)))
    await reader.step()
    await inbox.take(NAME, request(case(1)))
    inbox.intake.lose_stream()
    await inbox.take(NAME, request(case(2)))
    with structlog.testing.capture_logs() as logs:
        await reader.step()
    assert [line["event"] for line in logs if line["log_level"] == "error"] == [
        "accepted pushes lost"
    ]
    assert (await titles(database)).keys() == {"case-0", "case-2"}
    await inbox.flush()
    assert await prove(database, clock) == (["lost-push"], [])
    assert await count_losses(metrics) == 1
    assert "after number 1, at least those up to number 2, are gone" in await loss(database)
    assert await position(database) == (1, 1)


async def test_a_lost_end_of_the_stream_is_in_the_proof_though_its_numbers_are_given_again(
    database, clock, inbox, reader, metrics
):
    await inbox.take(NAME, request(case(0)))
    await reader.step()
    await inbox.take(NAME, request(case(1)))
    await inbox.take(NAME, request(case(2)))
    inbox.intake.lose_last()
    inbox.intake.lose_last()
    for number in range(3, 6):
        await inbox.take(NAME, request(case(number)))
    await reader.step()
    assert (await titles(database)).keys() == {"case-0", "case-3", "case-4", "case-5"}
    await inbox.flush()
    assert await prove(database, clock) == (["lost-push"], [])
    assert await count_losses(metrics) == 1


async def test_a_stream_that_ends_before_what_was_read_is_in_the_proof_once(
    database, clock, inbox, reader, metrics
):
    for number in range(3):
        await inbox.take(NAME, request(case(number)))
    await reader.step()
    inbox.intake.lose_last()
    await reader.step()
    await reader.step()
    assert await prove(database, clock) == (["lost-push"], [])
    assert await count_losses(metrics) == 1
    assert "ends at number 2, although Tocsin has already read number 3" in await loss(database)


async def test_a_push_that_its_sender_repeats_is_no_loss(database, clock, inbox, reader, metrics):
    for key in ("first", "second", "first"):
        await inbox.take(NAME, request(case(0)), key)
    await reader.step()
    await inbox.flush()
    assert await prove(database, clock) == ([], [])
    assert await count_losses(metrics) == 0


async def test_an_idle_provider_misses_nothing_when_pushes_to_others_expire(
    database, clock, inbox, reader, metrics
):
    await inbox.take(NAME, request(case(0)))
    await reader.step()
    for key in range(3):
        other = IntakePush(provider="other", key=str(key), received_at=clock.now(), body=b"")
        await inbox.intake.publish(other)
    await reader.step()
    assert await position(database) == (1, 1)
    clock.advance(hours=1)
    await reader.step()
    assert await position(database) == (4, 4)
    inbox.intake.lost = 4
    await reader.step()
    assert await prove(database, clock) == ([], [])
    assert await count_losses(metrics) == 0


async def test_pushes_that_expired_before_they_were_stored_are_in_the_proof(
    database, clock, inbox, reader, metrics
):
    for number in range(3):
        await inbox.take(NAME, request(case(number)))
    await reader.load()
    await reader.step()
    await inbox.take(NAME, request(case(3)))
    await inbox.take(NAME, request(case(4)))
    inbox.intake.lost = 4
    await reader.step()
    assert (await titles(database)).keys() == {"case-0", "case-1", "case-2", "case-4"}
    assert await prove(database, clock) == (["lost-push"], [])
    assert await count_losses(metrics) == 1
