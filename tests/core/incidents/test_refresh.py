"""New incidents are read again, since what belongs to them may come later."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import delete

from tocsin import CredentialsRefused, Incident, Page, Severity, TryLater
from tocsin.incidents.coverage.positions import StreamKey
from tocsin.incidents.storage.store import store_page
from tocsin.incidents.sync import refresh
from tocsin.store.tables import incident_entities, incidents, quarantine, rereads

AFTER = ("2m", "10m", "30m")
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def incident(number: int) -> Incident:
    return Incident(
        external_id=str(number), title=f"number {number}", severity=Severity.HIGH, occurred_at=BEGIN
    )


@pytest.fixture
def sync(make_archive):
    return make_archive(refresh_after=AFTER)


@pytest.fixture
def store_new(database, clock, sync):
    async def store(*numbers: int) -> None:
        page = Page(next_position={}, incidents=tuple(incident(number) for number in numbers))
        await database.write(
            store_page,
            StreamKey(sync.name, "other"),
            page,
            revision=0,
            policy=sync._writer.policy,
            now=clock.now(),
        )

    return store


async def test_a_new_incident_is_read_again_as_often_as_is_set(sync, store_new, rows, clock):
    await store_new(1)
    for minutes, times in ((1, 0), (1, 1), (7, 1), (1, 2), (20, 3), (100, 3)):
        clock.advance(minutes=minutes)
        await sync.read_all()
        assert sync.provider.again == ["1"] * times
    assert await rows(rereads) == []
    assert {row["value"] for row in await rows(incident_entities)} == {
        "10.0.0.1",
        "10.0.0.2",
        "10.0.0.3",
    }


async def test_one_that_lacks_something_is_read_again_though_it_is_not_new(
    sync, store_new, database, rows, clock
):
    await store_new(1, 2)
    await database.write(lambda connection: connection.execute(delete(rereads)))
    page = Page(next_position={}, incidents=(incident(1), incident(2)), incomplete=("2",))
    key, policy = StreamKey(sync.name, "other"), sync._writer.policy
    await database.write(store_page, key, page, revision=1, policy=policy, now=clock.now())
    assert [row["external_id"] for row in await rows(rereads)] == ["2"]


async def test_nothing_is_read_again_where_that_is_not_set(make_archive):
    assert make_archive(refresh_after=())._writer.policy.refresh_after == ()


async def test_what_the_siem_is_too_busy_for_stays_due(sync, store_new, rows, clock):
    await store_new(1, 2)
    clock.advance(minutes=2)
    sync.provider.errors = [TryLater("busy")]
    await sync.read_all()
    await sync.read_all()
    assert len(sync.provider.again) == 1
    clock.advance(minutes=3)
    await sync.read_all()
    assert sorted(sync.provider.again[1:]) == ["1", "2"]


async def test_one_that_may_not_be_read_holds_up_no_other_and_is_asked_for_ever_more_seldom(
    sync, store_new, rows, clock
):
    await store_new(1, 2)
    clock.advance(minutes=2)

    async def forbidden(external_id):
        sync.provider.again.append(external_id)
        if external_id == "1":
            raise CredentialsRefused("403")

    sync.provider.incident = forbidden
    for _ in range(360):
        clock.advance(seconds=10)
        await sync.read_all()
    assert "2" in sync.provider.again
    assert sync.provider.again.count("1") < 8


async def test_credentials_that_are_refused_end_no_reread(sync, store_new, rows, clock):
    await store_new(1)
    clock.advance(minutes=2)
    sync.provider.errors = [CredentialsRefused("no")]
    await sync.read_all()
    assert [row["step"] for row in await rows(rereads)] == [0]


async def test_one_whose_last_refresh_fails_once_is_read_again_within_minutes(
    sync, store_new, rows, clock
):
    await store_new(1)
    for minutes in (2, 8):
        clock.advance(minutes=minutes)
        await sync.read_all()
    sync.provider.errors = [TryLater("502")]
    for minutes in (20, 2):
        clock.advance(minutes=minutes)
        await sync.read_all()
    assert await rows(rereads) == []


async def test_an_incident_that_cannot_be_read_stops_no_other(sync, store_new, rows, clock):
    await store_new(1, 2)
    clock.advance(minutes=2)
    sync.provider.errors = [KeyError("entities")]
    await sync.read_all()
    assert sorted(sync.provider.again) == ["1", "2"]
    assert [row["step"] for row in await rows(rereads)] == [0, 1]
    clock.advance(minutes=2)
    await sync.read_all()
    assert [row["step"] for row in await rows(rereads)] == [1, 1]


async def test_one_that_always_breaks_is_left_as_it_is_in_the_end(sync, store_new, rows, clock):
    await store_new(1)
    sync.provider.errors = [KeyError("entities") for _ in range(100)]
    for _ in range(60):
        clock.advance(hours=1)
        await sync.read_all()
    assert await rows(rereads) == []
    assert len(sync.provider.errors) > 70


async def test_one_that_is_gone_stays_as_it_was(sync, store_new, rows, clock):
    await store_new(1)
    sync.provider.gone = {"1"}
    clock.advance(minutes=2)
    await sync.read_all()
    [row] = await rows(incidents)
    assert (row["title"], await rows(incident_entities)) == ("number 1", [])


async def test_one_that_cannot_be_kept_is_kept_aside(sync, store_new, rows, clock):
    async def broken(external_id: str) -> Incident:
        return replace(incident(int(external_id)), occurred_at=datetime(2026, 1, 1))  # noqa: DTZ001

    await store_new(1)
    clock.advance(minutes=2)
    sync.provider.incident = broken
    await sync.read_all()
    [kept_aside] = await rows(quarantine)
    assert "must be a time with a time zone, not" in kept_aside["reason"]
    assert [row["step"] for row in await rows(rereads)] == [1]


async def test_slow_ones_do_not_hold_up_the_next_read(sync, store_new, clock):
    asked = []

    async def slow(external_id: str) -> None:
        asked.append(external_id)
        clock.advance(seconds=6)

    await store_new(*range(10))
    clock.advance(minutes=2)
    sync.provider.incident = slow
    await sync.read_all()
    assert len(asked) == 2


async def test_all_that_are_due_are_read_again_before_the_next_poll(sync, store_new, rows, clock):
    await store_new(*range(3 * refresh.BATCH_SIZE))
    clock.advance(minutes=2)
    again_at = clock.now() + sync.provider.settings.poll_interval
    waits = 0

    async def wait(at_most):
        nonlocal waits
        waits += 1
        clock.advance(seconds=(again_at - clock.now()).total_seconds())

    sync._new_backfill.wait = wait
    await sync.step()
    assert waits == 1
    assert {row["step"] for row in await rows(rereads)} == {1}


async def test_a_siem_that_is_away_is_left_alone_though_refreshes_are_due(sync, store_new, clock):
    await store_new(*range(2 * refresh.BATCH_SIZE))
    clock.advance(minutes=2)
    await sync.read_all()
    sync._is_away, waits = True, []

    async def read_all():
        return sync.provider.settings.poll_interval

    async def wait(at_most):
        waits.append(at_most)
        clock.advance(seconds=at_most.total_seconds())

    sync.read_all, sync._new_backfill.wait = read_all, wait
    asked = len(sync.provider.again)
    await sync.step()
    assert sum(waits, timedelta(0)) == sync.provider.settings.poll_interval
    assert len(sync.provider.again) == asked


async def test_those_that_are_due_together_are_stored_together(sync, store_new, rows, clock):
    await store_new(1, 2, 3)
    clock.advance(minutes=2)
    write, stored = sync._writer.write, []

    async def count(*given):
        stored.append(await write(*given))
        return stored[-1]

    sync._writer.write = count
    await sync._refresher.work()
    assert [result.counts.changed for result in stored] == [3]
    assert [row["step"] for row in await rows(rereads)] == [1, 1, 1]


async def test_one_that_fails_to_be_stored_stops_no_other(sync, store_new, rows, clock):
    await store_new(1, 2, 3)
    clock.advance(minutes=2)
    write = refresh.store_received

    def fail(connection, key, received, **more):
        if any(incident.external_id == "2" for incident in received.incidents):
            raise KeyError("entities")
        return write(connection, key, received, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(refresh, "store_received", fail)
        await sync._refresher.work()
    found = {row["external_id"]: row["step"] for row in await rows(rereads)}
    assert found == {"1": 1, "2": 0, "3": 1}
