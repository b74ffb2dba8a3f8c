"""From one read to the next: how long that takes, and what is done meanwhile."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tocsin import CredentialsRefused, TryLater
from tocsin.incidents import BackfillOrigin, create_backfill
from tocsin.model import Window

MINUTE = timedelta(minutes=1)
pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


class Waiting:
    """A notifier that nobody rings; whoever waits for it moves the clock."""

    def __init__(self, clock) -> None:
        self.clock = clock
        self.waited = timedelta(0)
        self.set_back = timedelta(0)

    async def wait(self, at_most: timedelta) -> None:
        self.waited += at_most
        await self.clock.sleep(at_most - self.set_back)
        self.set_back = timedelta(0)


@pytest.fixture
def notifier(clock):
    return Waiting(clock)


@pytest.fixture
def sync(make_archive, notifier):
    sync = make_archive(poll_interval="1m")
    sync._new_backfill = notifier
    return sync


async def test_a_poll_lies_between_two_reads(sync, notifier):
    await sync.step()
    assert notifier.waited == MINUTE


async def test_a_clock_that_is_set_back_does_not_stop_reading(sync, notifier):
    notifier.set_back = timedelta(hours=1)
    await sync.step()
    assert notifier.waited <= 2 * MINUTE


@pytest.mark.parametrize(
    "error", [TryLater("429", after=timedelta(minutes=30)), CredentialsRefused("401")]
)
async def test_a_siem_that_wants_to_be_left_alone_is_not_asked_for_the_past(
    sync, database, clock, error
):
    asked = []

    async def fail(*_):
        asked.append("read")
        raise error
        yield

    sync.provider.read = fail
    window = Window(clock.now() - timedelta(days=2), clock.now() - timedelta(days=1))
    members = {"alert": True, "origin": BackfillOrigin.OPERATOR, "by": "ana", "now": clock.now()}
    await database.write(create_backfill, "archive", window, **members)
    await sync.step()
    assert (asked, sync.provider.asked) == (["read"], [])
