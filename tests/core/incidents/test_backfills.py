"""Reading stretches of the past: page by page, through failures and ends, and quietly."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from tocsin import (
    Broken,
    Covered,
    CredentialsRefused,
    Incident,
    Page,
    Refused,
    Severity,
    TryLater,
    Window,
)
from tocsin.accounting import Period, report_period
from tocsin.clock import isoformat
from tocsin.incidents import (
    BackfillOrigin,
    BackfillState,
    ProviderSync,
    create_backfill,
    end_backfill,
    list_backfills,
    list_coverage,
)
from tocsin.incidents.backfills.records import load_backfill
from tocsin.incidents.backfills.runner import DEFAULT_LATENESS, MISCONFIGURED_PAUSE, RETRIES
from tocsin.incidents.sync import lease
from tocsin.store import Lease
from tocsin.store.tables import backfills, events, incidents, rereads

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
            origin=BackfillOrigin.OPERATOR,
            by="ana",
            now=clock.now(),
        )
        return made["id"]

    return ask


@pytest.fixture
def make_current(make_archive):
    """Return a sync that has read on up to now, which a quiet backfill waits for."""

    async def make() -> ProviderSync:
        sync = make_archive()
        await sync.read_all()
        sync.provider.asked.clear()
        return sync

    return make


@pytest.fixture
def load(database):
    return lambda backfill_id: database.read(load_backfill, backfill_id)


async def test_a_backfill_reads_its_window_and_alerts_nobody(make_current, ask, load, rows):
    asked = await ask()
    await (await make_current()).read_the_past()
    found = await load(asked)
    assert (found["state"], found["progress"], found["new"]) == ("completed", 1.0, 3)
    assert [row["alert_outcome"] for row in await rows(incidents)] == ["quiet"] * 3
    assert await rows(events) == []


async def test_only_what_is_young_is_read_again(make_archive, ask, rows):
    await ask(alert=True)
    await ask(alert=True, ago=3)
    await make_archive(refresh_after=["10m", "90m"]).read_the_past()
    found = [row["external_id"] for row in await rows(incidents)]
    assert [row["external_id"] for row in await rows(rereads)] == found[-1:]


async def test_a_backfill_that_is_to_alert_does(make_archive, ask, rows):
    await ask(alert=True)
    await make_archive().read_the_past()
    assert len(await rows(events)) == 3


async def test_one_page_at_least_is_read_and_the_rest_when_there_is_time(
    make_current, ask, load, clock
):
    asked, sync = await ask(), await make_current()
    await sync.read_the_past(clock.now())
    found = await load(asked)
    assert (found["state"], found["records"], found["progress"]) == ("running", 1, 0.333)
    await sync.read_the_past()
    assert (await load(asked))["records"] == 3


async def test_another_node_goes_on_where_one_has_stopped(make_current, ask, load, clock):
    asked = await ask()
    await (await make_current()).read_the_past(clock.now())
    other = await make_current()
    await other.read_the_past()
    [(_, position)] = other.provider.asked
    assert position == {"at": (clock.now() - 47 * HOUR).isoformat()}
    assert (await load(asked))["records"] == 3


async def test_a_failure_puts_it_off_with_the_reason_and_loses_nothing(
    make_current, ask, load, clock
):
    asked, sync = await ask(), await make_current()
    sync.provider.errors = [TryLater("busy")]
    await sync.read_the_past()
    found = await load(asked)
    assert (found["state"], found["reason"]) == ("running", "busy")
    clock.advance(seconds=RETRIES[0].total_seconds())
    await sync.read_the_past()
    found = await load(asked)
    assert (found["state"], found["reason"], found["new"]) == ("completed", None, 3)


async def test_what_keeps_failing_has_failed_in_the_end(make_current, ask, load, clock):
    asked, sync = await ask(), await make_current()
    sync.provider.errors = [Broken(f"500, {number}") for number in range(10)]
    for wait in (timedelta(0), *RETRIES):
        clock.advance(seconds=wait.total_seconds())
        assert (await load(asked))["state"] == "running"
        await sync.read_the_past()
    found = await load(asked)
    assert (found["state"], found["reason"]) == ("failed", "500, 5")


async def test_what_is_refused_has_failed_at_once(make_current, ask, load):
    asked, sync = await ask(), await make_current()
    sync.provider.errors = [Refused("no such window")]
    await sync.read_the_past()
    found = await load(asked)
    assert (found["state"], found["reason"]) == ("failed", "no such window")


async def test_a_cancelled_backfill_stops_where_it_is(make_current, ask, load, database, clock):
    asked, sync = await ask(), await make_current()
    await sync.read_the_past(clock.now())
    await database.write(end_backfill, asked, BackfillState.CANCELLED, clock.now())
    await sync.read_the_past()
    found = await load(asked)
    assert (found["state"], found["records"]) == ("cancelled", 1)


async def test_backfills_of_other_providers_are_left_alone(make_current, ask, load):
    asked = await ask(name="other")
    await (await make_current()).read_the_past()
    assert (await load(asked))["records"] == 0


async def test_the_list_begins_with_the_newest_and_goes_on(ask, database):
    first, second = await ask(), await ask()
    page = await database.read(lambda connection: list_backfills(connection, limit=1))
    assert ([backfill["id"] for backfill in page.backfills], page.total, page.next) == (
        [second],
        2,
        second,
    )
    page = await database.read(
        lambda connection: list_backfills(connection, limit=1, before=second)
    )
    assert ([backfill["id"] for backfill in page.backfills], page.next) == ([first], None)


async def test_a_quiet_one_waits_until_the_provider_was_read_on(make_archive, ask, load, clock):
    sync = make_archive()
    await sync.read_all()
    clock.advance(minutes=1)
    asked = await ask()
    await sync.read_the_past()
    assert (await load(asked))["records"] == 0
    await sync.read_all()
    await sync.read_the_past()
    assert (await load(asked))["state"] == "completed"


async def test_a_quiet_one_leaves_what_may_come_late_to_reading_on(
    make_current, ask, load, rows, clock
):
    asked, sync = await ask(2, ago=2), await make_current()
    await sync.read_the_past()
    assert (await load(asked))["to"] == isoformat(clock.now() - DEFAULT_LATENESS)
    [*_, latest] = await rows(incidents)
    assert latest["occurred_at"] < clock.now() - DEFAULT_LATENESS


async def test_a_quiet_one_takes_no_alert_from_what_is_new(make_archive, ask, rows, clock):
    """What is new comes after a read, and is there when the past is read."""
    sync = make_archive()
    await sync.read_all()
    clock.advance(minutes=1)
    new = Incident(external_id="new", title="new", severity=Severity.HIGH, occurred_at=clock.now())

    async def find_new(*_):
        yield Page(next_position={"at": clock.now().isoformat()}, incidents=(new,), records=1)

    sync.provider.read = sync.provider.backfill = find_new
    await ask(2, ago=2)
    await sync.read_the_past()
    await sync.read_all()
    await sync.read_the_past()
    assert [row["alert_outcome"] for row in await rows(incidents)] == ["alerted"]
    assert len(await rows(events)) == 1


async def test_a_failure_heeds_the_delay_that_was_asked_for(make_current, ask, rows, clock):
    await ask()
    sync = await make_current()
    sync.provider.errors = [TryLater("429", after=HOUR)]
    await sync.read_the_past()
    [row] = await rows(backfills)
    assert row["due_at"] == clock.now() + HOUR


async def test_refused_credentials_put_it_off_until_they_are_mended(make_current, ask, load, clock):
    asked, sync = await ask(), await make_current()
    sync.provider.errors = [CredentialsRefused("401") for _ in range(10)]
    for _ in range(10):
        await sync.read_the_past()
        assert ((found := await load(asked))["state"], found["reason"]) == ("running", "401")
        clock.advance(seconds=MISCONFIGURED_PAUSE.total_seconds())
    await sync.read_the_past()
    assert (await load(asked))["state"] == "completed"


async def test_whoever_lost_the_lease_leaves_them_alone(make_current, ask, load):
    asked, sync = await ask(), await make_current()
    sync._writer.lease = Lease(lease._leased, "archive", "stale")
    await sync.read_the_past()
    assert len(sync.provider.asked) == 1
    assert (await load(asked))["records"] == 0


async def test_the_ledger_tells_what_a_backfill_has_read(make_current, ask, database):
    await ask()
    await (await make_current()).read_the_past()
    newest, *_, first = await database.read(list_coverage, "archive", 10)
    assert [(row["stream"], row["past"]) for row in (newest, first)] == [
        ("changed", True),
        ("changed", False),
    ]


def lost(start: datetime) -> Covered:
    return Covered(
        source="changed", start=start, end=start + timedelta(seconds=1), lost="it breaks"
    )


async def prove_all(database, clock):
    period = Period(clock.now() - timedelta(days=2), clock.now() + timedelta(seconds=1))
    return await database.read(report_period, period, clock.now())


async def test_what_was_lost_is_read_again_and_then_lost_no_more(
    make_archive, rows, database, clock
):
    sync = make_archive()
    sync.provider.lost = [lost(clock.now() - 2 * HOUR)]
    await sync.read_all()
    assert [loss["reason"] for loss in (await prove_all(database, clock))["lost"]] == ["it breaks"]
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


async def test_lost_seconds_that_touch_are_read_again_as_one(make_archive, rows, clock):
    sync, start = make_archive(), clock.now() - 2 * HOUR
    seconds = [start + timedelta(seconds=number) for number in (*range(60), *range(100, 160))]
    sync.provider.lost = [lost(second) for second in seconds]
    await sync.read_all()
    await sync.read_the_past()
    assert [(row["start"], row["end"]) for row in await rows(backfills)] == [
        (start, start + timedelta(seconds=60)),
        (start + timedelta(seconds=100), start + timedelta(seconds=160)),
    ]


async def test_what_a_person_failed_to_read_is_tried_again_all_the_same(
    make_archive, ask, rows, clock
):
    sync = make_archive()
    sync.provider.lost = [lost(clock.now() - 47 * HOUR)]
    await sync.read_all()
    clock.advance(minutes=1)
    await ask(alert=True)
    sync.provider.errors = [Refused("400")]
    await sync._backfill_runner.work()
    await sync.read_the_past()
    assert [(row["origin"], row["state"]) for row in await rows(backfills)] == [
        ("operator", "failed"),
        ("lost", "completed"),
    ]
