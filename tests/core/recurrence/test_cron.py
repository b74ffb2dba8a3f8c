"""Cron expressions: what they mean, and what is said of those that mean nothing."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.recurrence import CronError
from tocsin.recurrence.cron import NICKNAMES, find_shortest_interval, iter_cron_times, parse_cron

BERLIN = ZoneInfo("Europe/Berlin")


def fires(expression: str, after: str, count: int, zone: ZoneInfo = BERLIN) -> list[str]:
    """Return fire times as a clock on the wall of the zone shows them."""
    begin = datetime.fromisoformat(after).replace(tzinfo=zone)
    times = islice(iter_cron_times(parse_cron(expression), zone, begin.astimezone(UTC)), count)
    return [f"{time.astimezone(zone):%m-%d %H:%M %Z}" for time in times]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("0 2 * * *", ["01-01 02:00 CET", "01-02 02:00 CET"]),
        ("0 2 * * 0", ["01-04 02:00 CET", "01-11 02:00 CET"]),
        ("0 2 * * 7", ["01-04 02:00 CET", "01-11 02:00 CET"]),
        ("0 2 * * sun", ["01-04 02:00 CET", "01-11 02:00 CET"]),
        ("0 2 1 FEB-MAR *", ["02-01 02:00 CET", "03-01 02:00 CET"]),
        ("*/30 9-10 * * mon-fri", ["01-01 09:00 CET", "01-01 09:30 CET"]),
        ("@daily", ["01-02 00:00 CET", "01-03 00:00 CET"]),
        ("@Monthly", ["02-01 00:00 CET", "03-01 00:00 CET"]),
        ("  0   2 * *  * ", ["01-01 02:00 CET", "01-02 02:00 CET"]),
    ],
)
def test_an_expression_means_what_it_does_elsewhere(expression, expected):
    assert fires(expression, "2026-01-01T00:00", 2) == expected


def test_where_both_day_fields_are_given_either_is_enough():
    expected = ["01-04 00:00 CET", "01-11 00:00 CET", "01-13 00:00 CET", "01-18 00:00 CET"]
    assert fires("0 0 13 * sun", "2026-01-01T00:00", 4) == expected


def test_what_summer_time_leaves_out_runs_right_after_it_once():
    expected = ["03-28 02:30 CET", "03-29 03:00 CEST", "03-30 02:00 CEST", "03-30 02:30 CEST"]
    assert fires("0,30 2 * * *", "2026-03-28T02:00", 4) == expected


def test_what_comes_twice_in_autumn_runs_once():
    expected = ["10-25 02:30 CEST", "10-26 02:30 CET"]
    assert fires("30 2 * * *", "2026-10-25T00:00", 2) == expected


def test_within_the_hour_that_comes_twice_nothing_runs_again():
    second_time = datetime(2026, 10, 25, 1, 15, tzinfo=UTC)  # 02:15 for the second time
    [following] = islice(iter_cron_times("30 2 * * *", BERLIN, second_time), 1)
    assert following == datetime(2026, 10, 26, 1, 30, tzinfo=UTC)


@pytest.mark.parametrize("day", ["2026-03-29", "2026-10-25"])
def test_what_runs_every_so_many_minutes_goes_by_the_time_that_passes(day):
    begin = datetime.fromisoformat(f"{day}T00:00").replace(tzinfo=BERLIN).astimezone(UTC)
    times = list(islice(iter_cron_times("*/20 * * * *", BERLIN, begin), 24))
    assert times == [begin + n * timedelta(minutes=20) for n in range(1, 25)]


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("61 * * * *", "the minute field '61' is invalid: use 0 to 59, a list, a range or a step"),
        ("0 24 * * *", "the hour field '24' is invalid"),
        ("0 0 0 * *", "the day-of-month field '0' is invalid"),
        ("0 0 30 2 *", "the expression never fires: no month in '2' has 30 days"),
        ("0 0 * 13 *", "the month field '13' is invalid"),
        ("0 0 * * 8", "the day-of-week field '8' is invalid"),
        ("*/0 * * * *", r"the minute field '\*/0' is invalid"),
        ("5-1 * * * *", "the minute field '5-1' is invalid"),
        ("* * * *", "use five fields, such as '0 2 \\* \\* \\*': minute, hour"),
        ("0 * * * * *", "use five fields"),
        ("", "use five fields"),
        ("@reboot", "unknown nickname '@reboot'; use one of: @yearly"),
    ],
)
def test_what_is_no_expression_is_told_with_its_field(expression, words):
    with pytest.raises(CronError, match=words):
        parse_cron(expression)


def test_how_close_together_the_fire_times_are():
    assert find_shortest_interval("0,10 * * * *", "UTC") == timedelta(minutes=10)
    assert find_shortest_interval("0 0 29 2 *", "UTC") == timedelta(days=4 * 365 + 1)


field = st.sampled_from(["*", "0", "5", "1-3", "*/2", "1,4", "2-6/2"])
EXPRESSIONS = st.one_of(
    st.sampled_from(sorted(NICKNAMES)),
    st.tuples(field, field, st.sampled_from(["*", "1", "13", "L"]), st.just("*"), field).map(
        " ".join
    ),
)
ZONES = st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"])
MOMENTS = st.integers(0, 10 * 366 * 86_400).map(
    lambda seconds: datetime(2020, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
)


@given(EXPRESSIONS, ZONES, MOMENTS)
def test_fire_times_follow_each_other_and_begin_after_the_moment_given(expression, zone, after):
    times = list(islice(iter_cron_times(parse_cron(expression), ZoneInfo(zone), after), 20))
    assert times[0] > after
    assert times == sorted(set(times))


@given(EXPRESSIONS, ZONES, MOMENTS, st.integers(0, 20))
def test_wherever_one_begins_the_fire_times_are_the_same(expression, zone, after, place):
    text, zone = parse_cron(expression), ZoneInfo(zone)
    times = list(islice(iter_cron_times(text, zone, after), 25))
    assert (
        list(islice(iter_cron_times(text, zone, times[place]), 4)) == times[place + 1 : place + 5]
    )


@given(st.text(max_size=30))
def test_any_text_is_an_expression_or_told_why_not(text):
    with suppress(CronError):
        assert len(parse_cron(text).split()) == 5
