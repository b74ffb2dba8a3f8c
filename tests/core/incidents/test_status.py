"""How each provider does, as everyone can see it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tocsin import Capability, TryLater, Window
from tocsin.incidents import BackfillOrigin, ProviderFacts, create_backfill, list_providers
from tocsin.incidents.sync.lease import acquire_lease
from tocsin.store import record_heartbeat

NODE = 7
FACTS = ProviderFacts("archive", "archive", frozenset({Capability.BACKFILL}))


@pytest.fixture
async def sync(make_archive, database, clock):
    sync = make_archive()
    settings = sync.provider.settings
    sync._writer.lease = await database.write(acquire_lease, sync.name, settings, NODE, clock.now())
    return sync


@pytest.fixture
def show(database, clock):
    begun = clock.now()  # the lease of the tests holds then

    async def show(facts: ProviderFacts = FACTS) -> dict:
        [shown] = await database.read(list_providers, [facts], begun)
        return shown

    return show


async def test_one_that_was_never_read_waits(show):
    shown = await show()
    assert (shown["state"], shown["read_at"], shown["capabilities"]) == (
        "waiting",
        None,
        ["backfill"],
    )


async def test_one_that_is_read_is_healthy_and_says_up_to_when(sync, show):
    await sync.read_all()
    shown = await show()
    assert (shown["state"], shown["outcome"], shown["reason"], shown["node"]) == (
        "healthy",
        "read",
        None,
        "7",
    )
    assert shown["next_read_at"] == "2026-11-21T12:01:00.000Z"
    [stream] = shown["streams"]
    assert (stream["name"], stream["covered_until"]) == ("changed", "2026-11-21T12:00:00.000Z")


async def test_one_with_a_defect_on_a_running_node_is_degraded(
    sync, show, clock, database, monkeypatch
):
    monkeypatch.setattr("tocsin.store.heartbeats._is_running", lambda *_: True)
    defects = {"providers.archive": "it held the event loop repeatedly"}
    beat = clock.now()
    await database.write(record_heartbeat, NODE, "soc-1:8080", [], beat, degraded=defects)
    shown = await show()
    assert (shown["state"], shown["reason"]) == ("degraded", "it held the event loop repeatedly")
    await database.write(
        record_heartbeat, NODE, "soc-1:8080", [], beat - timedelta(minutes=1), degraded=defects
    )
    assert (await show())["state"] == "waiting"


async def test_one_that_fails_says_why_and_since_when(sync, show, clock, monkeypatch):
    async def fail(stream, position, until):
        raise TryLater("busy")
        yield

    await sync.read_all()
    monkeypatch.setattr(sync.provider, "read", fail)
    for _ in range(3):
        clock.advance(minutes=1)
        await sync.read_all()
    shown = await show()
    assert (shown["state"], shown["outcome"], shown["reason"], shown["failures"]) == (
        "failing",
        "later",
        "busy",
        3,
    )
    assert shown["failing_since"] == "2026-11-21T12:01:00.000Z"
    assert shown["succeeded_at"] == "2026-11-21T12:00:00.000Z"
    monkeypatch.undo()
    await sync.read_all()
    shown = await show()
    assert (shown["state"], shown["reason"], shown["failing_since"]) == ("healthy", None, None)


async def test_the_clock_skew_is_shown(sync, show):
    sync.provider.clock_skew = timedelta(minutes=5)
    await sync.read_all()
    assert (await show())["clock_skew_seconds"] == 300


async def test_a_backfill_says_nothing_of_up_to_when_it_was_read(sync, show, database, clock):
    await sync.read_all()
    window = Window(clock.now() + timedelta(hours=1), clock.now() + timedelta(hours=2))
    members = {"alert": True, "origin": BackfillOrigin.OPERATOR, "by": "ana", "now": clock.now()}
    await database.write(create_backfill, "archive", window, **members)
    await sync.read_the_past()
    [stream] = (await show())["streams"]
    assert stream["covered_until"] == "2026-11-21T12:00:00.000Z"


async def test_one_that_was_left_out_says_why(show):
    shown = await show(ProviderFacts("archive", "archive", frozenset(), "no module named acme"))
    assert (shown["state"], shown["reason"]) == ("absent", "no module named acme")


async def test_one_that_was_left_out_later_has_no_outcome_of_before(sync, show):
    await sync.read_all()
    shown = await show(ProviderFacts("archive", "archive", frozenset(), "no module named acme"))
    assert (shown["state"], shown["outcome"], shown["next_read_at"]) == ("absent", None, None)
    assert shown["succeeded_at"] is not None


async def test_one_that_is_sent_to_is_pushed(show):
    facts = ProviderFacts("alerts", "push", frozenset({Capability.PUSH}))
    assert (await show(facts))["state"] == "pushed"


async def test_one_that_was_removed_is_still_shown(sync, database, clock):
    await sync.read_all()
    [shown] = await database.read(list_providers, [], clock.now())
    assert (shown["name"], shown["state"]) == ("archive", "removed")


async def test_one_that_no_node_reads_at_present_waits(sync, show, database, clock):
    await sync.read_all()
    clock.advance(minutes=2)
    [shown] = await database.read(list_providers, [FACTS], clock.now())
    assert shown["state"] == "waiting"
