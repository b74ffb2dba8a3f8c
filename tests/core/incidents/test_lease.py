"""One node at a time reads a provider, whatever the others do."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import asyncpg
import pytest

from tocsin import TryLater
from tocsin.incidents.sync.lease import acquire_lease, hold_lease
from tocsin.loops import was_cancelled
from tocsin.store import LEASE_DURATION, LeaseLost
from tocsin.store.tables import incidents, providers

HERE, THERE = 1, 2


@pytest.fixture
def provider(make_archive):
    return make_archive().provider


@pytest.fixture
async def there(database):
    """A node that attends: what it holds is not free."""
    ready = asyncio.Event()
    attending = asyncio.create_task(database.attend(THERE, lambda _topic: ready.set()))
    await ready.wait()
    yield attending
    attending.cancel()
    await asyncio.gather(attending, return_exceptions=True)


@pytest.fixture
def take_it(database, provider, clock):
    return lambda node: database.write(
        acquire_lease, provider.tools.name, provider.settings, node, clock.now()
    )


on_postgresql = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)


@on_postgresql
async def test_what_a_node_holds_that_is_there_is_not_to_be_had(take_it, there):
    assert await take_it(THERE) is not None
    assert await take_it(HERE) is None


@on_postgresql
async def test_who_asks_for_a_held_lease_waits_for_no_transaction(take_it, there, migrated_url):
    assert await take_it(THERE) is not None
    url = migrated_url.set(drivername="postgresql").render_as_string(hide_password=False)
    connection = await asyncpg.connect(url)
    async with connection.transaction():
        await connection.execute("UPDATE providers SET failures = 1")
        assert await asyncio.wait_for(take_it(HERE), 10) is None
    await connection.close()


@on_postgresql
async def test_the_lease_of_a_node_that_is_gone_is_free_at_once(take_it, there, database):
    held = await take_it(THERE)
    there.cancel()
    await asyncio.gather(there, return_exceptions=True)
    taken = await take_it(HERE)
    assert taken is not None
    with pytest.raises(LeaseLost):
        await database.read(held.confirm)


@on_postgresql
async def test_a_node_takes_up_the_lease_that_it_could_not_release(take_it, there, database):
    left = await take_it(THERE)  # the database was away when its work ended
    assert await take_it(THERE) is not None
    with pytest.raises(LeaseLost):
        await database.read(left.confirm)


@on_postgresql
async def test_a_lease_that_has_run_out_is_free_though_its_node_is_there(take_it, there, clock):
    assert await take_it(THERE) is not None
    clock.advance(seconds=LEASE_DURATION.total_seconds())
    assert await take_it(HERE) is not None


async def test_a_lease_is_renewed_until_another_has_it(take_it, database, clock):
    held = await take_it(HERE)
    clock.advance(seconds=60)
    assert await database.write(held.renew, clock.now())
    clock.advance(seconds=LEASE_DURATION.total_seconds())
    await take_it(THERE)
    assert not await database.write(held.renew, clock.now())


async def test_a_lease_that_was_given_back_is_free(take_it, database, rows):
    held = await take_it(HERE)
    await database.write(held.release)
    [row] = await rows(providers)
    assert (row["lease"], row["node"], row["leased_until"]) == (None, None, None)


async def test_nothing_is_stored_once_another_node_has_the_lease(
    make_archive, take_it, database, rows, clock
):
    sync = make_archive()
    sync._writer.lease = await take_it(HERE)
    clock.advance(seconds=LEASE_DURATION.total_seconds())
    await take_it(THERE)
    await sync.read_all()
    assert await rows(incidents) == []


async def test_whoever_loses_the_lease_is_stopped(provider, take_it, database, clock):
    async def read_on() -> None:
        async with hold_lease(provider, database, Patient(clock), HERE):
            clock.advance(seconds=LEASE_DURATION.total_seconds())
            await take_it(THERE)
            await asyncio.Event().wait()

    with pytest.raises(LeaseLost):
        await read_on()


async def test_whoever_makes_an_error_of_that_is_stopped_and_may_go_on(
    provider, take_it, database, clock
):
    async def read_on() -> None:
        async with hold_lease(provider, database, Patient(clock), HERE):
            clock.advance(seconds=LEASE_DURATION.total_seconds())
            await take_it(THERE)
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                raise TryLater("the connection was closed") from None

    with pytest.raises(LeaseLost):
        await read_on()
    assert not was_cancelled()


async def test_the_lease_is_given_back_at_the_end(provider, database, clock, rows):
    async with hold_lease(provider, database, Patient(clock), HERE):
        [row] = await rows(providers)
        assert row["node"] == HERE
    [row] = await rows(providers)
    assert row["lease"] is None


async def test_a_renewal_that_fails_as_it_is_cancelled_is_the_last_one(
    provider, database, clock, rows, monkeypatch
):
    entered, write = asyncio.Event(), database.write

    async def fail_as_cancelled(*arguments):
        if entered.is_set():
            return await write(*arguments)
        entered.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise OSError("the connection was closed") from None

    async with asyncio.timeout(10):
        async with hold_lease(provider, database, Patient(clock), HERE):
            monkeypatch.setattr(database, "write", fail_as_cancelled)
            await entered.wait()
    [row] = await rows(providers)
    assert row["lease"] is None


class Patient:
    """A clock whose sleepers let others run, as those of the machine's do."""

    def __init__(self, clock) -> None:
        self._clock = clock

    def now(self):
        return self._clock.now()

    async def sleep(self, duration: timedelta) -> None:
        await asyncio.sleep(0.005)
