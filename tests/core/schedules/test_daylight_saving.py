"""Through both changes of the clocks on the wall, each run is run once, and none is lost."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from full_run import postgresql_in_full
from schedule_harness import Office
from tocsin.testing import ManualClock

pytestmark = postgresql_in_full
BERLIN = ZoneInfo("Europe/Berlin")
SPRING, AUTUMN = datetime(2027, 3, 27, 23, tzinfo=UTC), datetime(2027, 10, 30, 22, tzinfo=UTC)


async def ran(database, begin: datetime, **given) -> list[str]:
    """Return when a schedule was run within two days, as clocks in Berlin showed it."""
    office = Office(database, ManualClock(begin))
    made = await office.make(timezone="Europe/Berlin", **given)
    for _ in range(2 * 24 * 4):
        await office.fire(minutes=15)
        await office.complete()
    assert set(await office.states(made.id)) == {"completed"}
    runs = await office.runs(made.id)
    assert all(run["started_at"] - run["fire_at"] < timedelta(minutes=15) for run in runs)
    return [f"{run['fire_at'].astimezone(BERLIN):%d. %H:%M %Z}" for run in runs]


@pytest.mark.parametrize(
    ("begin", "cron", "expected"),
    [
        (SPRING, "30 2 * * *", ["28. 03:00 CEST", "29. 02:30 CEST"]),
        (SPRING, "0,30 2 * * *", ["28. 03:00 CEST", "29. 02:00 CEST", "29. 02:30 CEST"]),
        (AUTUMN, "30 2 * * *", ["31. 02:30 CEST", "01. 02:30 CET"]),
        (AUTUMN, "0 3 * * *", ["31. 03:00 CET", "01. 03:00 CET"]),
    ],
)
async def test_a_nightly_run_is_run_each_night_once(database, begin, cron, expected):
    assert await ran(database, begin, cron=cron) == expected


@pytest.mark.parametrize(("begin", "runs"), [(SPRING, 48), (AUTUMN, 48)])
async def test_an_hourly_run_is_run_each_hour_that_passes(database, begin, runs):
    assert len(await ran(database, begin, cron="0 * * * *")) == runs


async def test_an_interval_knows_no_summer_time(database):
    times = await ran(database, SPRING, interval="12h")
    assert times == ["28. 13:00 CEST", "29. 01:00 CEST", "29. 13:00 CEST", "30. 01:00 CEST"]
