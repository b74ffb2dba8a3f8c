"""Reading stretches of the past: page by page, through failures and ends, and quietly."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from tocsin import Broken, Covered, Refused, TryLater, Window
from tocsin.accounting import Period, prove
from tocsin.incidents import BackfillState, Origin, create_backfill, end_backfill, list_backfills
from tocsin.incidents.backfills.records import load_backfill
from tocsin.incidents.backfills.running import RETRIES
from tocsin.store.tables import backfills, events, incidents

HOUR = timedelta(hours=1)


@pytest.fixture
def ask(database, clock):
    async def ask(hours: int = 3, *, ago: int = 48, alert: bool = False, name="archive") -> str:
        start = clock.now() - ago * HOUR
        made = await database.write(
            create_backfill,
            name,
            Window(start, start + hours * HOUR),
            alert=alert,
            origin=Origin.OPERATOR,
            by="ana",
            now=clock.now(),
        )
        return made["id"]

    return ask


@pytest.fixture
def load(database):
    return lambda backfill_id: database.read(load_backfill, backfill_id)


async def test_a_backfill_reads_its_window_and_alerts_nobody(make_archive, ask, load, rows):
    asked = await ask()
    await make_archive().read_the_past()
    found = await load(asked)
    assert (found["state"], found["progress"], found["new"]) == ("completed", 1.0, 3)
    assert [row["alert_outcome"] for row in await rows(incidents)] == ["quiet"] * 3
    assert await rows(events) == []


async def test_a_backfill_that_is_to_alert_does(make_archive, ask, rows):
    await ask(alert=True)
    await make_archive().read_the_past()
    assert len(await rows(events)) == 3


async def test_one_page_at_least_is_read_and_the_rest_when_there_is_time(
    make_archive, ask, load, clock
):
    asked, sync = await ask(), make_archive()
    await sync.read_the_past(clock.now())
    found = await load(asked)
    assert (found["state"], found["records"], found["progress"]) == ("running", 1, 0.333)
    await sync.read_the_past()
    assert (await load(asked))["records"] == 3


async def test_another_node_goes_on_where_one_has_stopped(make_archive, ask, load, clock):
    asked = await ask()
    await make_archive().read_the_past(clock.now())
    other = make_archive()
    await other.read_the_past()
    [(_, position)] = other.provider.asked
    assert position == {"at": (clock.now() - 47 * HOUR).isoformat()}
    assert (await load(asked))["records"] == 3


async def test_a_failure_puts_it_off_with_the_reason_and_loses_nothing(
    make_archive, ask, load, clock
):
    asked, sync = await ask(), make_archive()
    sync.provider.errors = [TryLater("busy")]
    await sync.read_the_past()
    found = await load(asked)
    assert (found["state"], found["reason"]) == ("running", "busy")
    clock.advance(seconds=RETRIES[0].total_seconds())
    await sync.read_the_past()
    found = await load(asked)
    assert (found["state"], found["reason"], found["new"]) == ("completed", None, 3)


async def test_what_keeps_failing_has_failed_in_the_end(make_archive, ask, load, clock):
    asked, sync = await ask(), make_archive()
    sync.provider.errors = [Broken(f"500, {number}") for number in range(10)]
    for wait in (timedelta(0), *RETRIES):
        clock.advance(seconds=wait.total_seconds())
        assert (await load(asked))["state"] == "running"
        await sync.read_the_past()
    found = await load(asked)
    assert (found["state"], found["reason"]) == ("failed", "500, 5")


async def test_what_is_refused_has_failed_at_once(make_archive, ask, load):
    asked, sync = await ask(), make_archive()
    sync.provider.errors = [Refused("no such window")]
    await sync.read_the_past()
    found = await load(asked)
    assert (found["state"], found["reason"]) == ("failed", "no such window")


async def test_a_cancelled_backfill_stops_where_it_is(make_archive, ask, load, database, clock):
    asked, sync = await ask(), make_archive()
    await sync.read_the_past(clock.now())
    await database.write(end_backfill, asked, BackfillState.CANCELLED, clock.now())
    await sync.read_the_past()
    found = await load(asked)
    assert (found["state"], found["records"]) == ("cancelled", 1)


async def test_backfills_of_other_providers_are_left_alone(make_archive, ask, load):
    asked = await ask(name="other")
    await make_archive().read_the_past()
    assert (await load(asked))["records"] == 0


async def test_the_list_begins_with_the_newest_and_goes_on(ask, database):
    first, second = await ask(), await ask()
    page = await database.read(lambda connection: list_backfills(connection, limit=1))
    assert ([it["id"] for it in page.backfills], page.total, page.next) == ([second], 2, second)
    page = await database.read(lambda it: list_backfills(it, limit=1, before=second))
    assert ([it["id"] for it in page.backfills], page.next) == ([first], None)


def lost(start: datetime) -> Covered:
    return Covered(
        source="changed", start=start, end=start + timedelta(seconds=1), lost="it breaks"
    )


async def prove_all(database, clock):
    period = Period(clock.now() - timedelta(days=2), clock.now() + timedelta(seconds=1))
    return await database.read(prove, period, clock.now())


async def test_what_was_lost_is_read_again_and_then_lost_no_more(
    make_archive, rows, database, clock
):
    sync = make_archive()
    sync.provider.lost = [lost(clock.now() - 2 * HOUR)]
    await sync.read_all()
    assert [it["reason"] for it in (await prove_all(database, clock))["lost"]] == ["it breaks"]
    await sync.read_the_past()
    [row] = await rows(backfills)
    assert (row["origin"], row["alert"], row["state"]) == ("lost", True, "completed")
    assert (await prove_all(database, clock))["lost"] == []


async def test_what_stays_lost_is_tried_again_for_a_while_and_said_to_be_lost(
    make_archive, rows, database, clock
):
    sync = make_archive()
    sync.provider.lost = [lost(clock.now() - 2 * HOUR)]
    await sync.read_all()
    sync.provider.errors = [Broken("it breaks") for _ in range(20)]
    for wait in (timedelta(0), *RETRIES, timedelta(days=2), timedelta(days=2)):
        clock.advance(seconds=wait.total_seconds())
        await sync.read_the_past()
    [row] = await rows(backfills)
    assert row["state"] == "failed"
    assert len(sync.provider.errors) == 20 - 1 - len(RETRIES)
