"""When a schedule runs, and what it has missed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tocsin.recurrence import MAX_COUNTED, Recurrence, ScheduleDefinition

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def recurrence(key: str = "sch_1", **given) -> Recurrence:
    return Recurrence(ScheduleDefinition(query="new logins", **given), key, BEGIN)


def times(made: Recurrence, after: datetime, count: int) -> list[datetime]:
    return [fire.at for fire in islice(made.after(after), count)]


def test_an_interval_counts_from_when_it_was_made():
    assert times(recurrence(interval="PT15M"), BEGIN, 2) == [
        BEGIN + 15 * MINUTE,
        BEGIN + 30 * MINUTE,
    ]


def test_an_interval_counts_from_the_beginning_that_it_is_given():
    made = recurrence(interval="1h", starts_at=BEGIN + 90 * MINUTE)
    assert times(made, BEGIN, 2) == [BEGIN + 90 * MINUTE, BEGIN + 150 * MINUTE]
    assert times(made, BEGIN + 5 * HOUR, 1) == [BEGIN + 330 * MINUTE]


def test_nothing_runs_before_the_beginning_or_after_the_end():
    made = recurrence(cron="0 * * * *", starts_at=BEGIN + 2 * HOUR, ends_at=BEGIN + 4 * HOUR)
    assert times(made, BEGIN, 9) == [BEGIN + 2 * HOUR, BEGIN + 3 * HOUR, BEGIN + 4 * HOUR]
    assert made.next(BEGIN + 4 * HOUR) is None
    assert made.pending(BEGIN + 4 * HOUR) is None


def test_a_cron_expression_is_in_its_zone():
    made = recurrence(cron="0 2 * * *", timezone="America/New_York")
    assert times(made, BEGIN, 1) == [BEGIN + 7 * HOUR]


def test_jitter_puts_off_each_run_by_less_than_it_and_every_node_draws_alike():
    made = recurrence(cron="*/5 * * * *", jitter="2m")
    fires = list(islice(made.after(BEGIN), 200))
    delays = [fire.due - fire.at for fire in fires]
    assert all(timedelta(0) <= delay < 2 * MINUTE for delay in delays)
    assert len(set(delays)) > 150
    assert list(islice(recurrence(cron="*/5 * * * *", jitter="2m").after(BEGIN), 200)) == fires
    other = recurrence("sch_2", cron="*/5 * * * *", jitter="2m")
    assert list(islice(other.after(BEGIN), 200)) != fires


def test_what_is_not_due_yet_follows():
    made = recurrence(interval="1h")
    past = made.past(BEGIN + HOUR, BEGIN + 59 * MINUTE)
    assert (past.latest, past.earlier) == (None, 0)
    assert past.following.at == BEGIN + HOUR


def test_what_is_put_off_still_follows():
    made = recurrence(interval="1h", jitter="50m")
    fire = made.next(BEGIN)
    past = made.past(fire.at, fire.due - timedelta(milliseconds=1))
    assert past.latest is None
    assert past.following == fire


def test_of_what_was_missed_the_latest_is_told_apart():
    past = recurrence(interval="1h").past(BEGIN + HOUR, BEGIN + 5 * HOUR + MINUTE)
    assert past.latest.at == BEGIN + 5 * HOUR
    assert (past.earlier, past.until) == (4, BEGIN + 4 * HOUR)
    assert past.following.at == BEGIN + 6 * HOUR


@pytest.mark.parametrize("given", [{"interval": "PT1M"}, {"cron": "* * * * *"}])
def test_of_a_long_time_only_so_much_is_counted(given):
    past = recurrence(**given).past(BEGIN + MINUTE, BEGIN + 365 * DAY)
    assert past.latest.at == BEGIN + 365 * DAY
    assert (past.earlier, past.until) == (MAX_COUNTED, BEGIN + 365 * DAY - MINUTE)
    assert past.following.at == BEGIN + 365 * DAY + MINUTE


@pytest.mark.parametrize(
    ("given", "latest", "until"),
    [
        ({"cron": "* 8-9 * * *"}, -DAY + 599 * MINUTE, -DAY + 598 * MINUTE),
        ({"cron": "0 * * * *"}, 0 * DAY, -HOUR),
        ({"interval": "10s", "misfire_grace": "7d"}, 0 * DAY, timedelta(seconds=-10)),
    ],
)
def test_after_a_long_time_the_end_is_known_all_the_same(given, latest, until):
    made, end = recurrence(**given), BEGIN + 120 * DAY
    past = made.past(made.next(BEGIN).at, end)
    assert past.first == made.next(BEGIN)
    assert (past.latest.at, past.until) == (end + latest, end + until)
    assert past.latest.due <= end < past.following.due


def test_what_has_ended_long_ago_has_a_latest_and_nothing_that_follows():
    made = recurrence(interval="PT1M", ends_at=BEGIN + 30 * DAY)
    past = made.past(BEGIN + MINUTE, BEGIN + 365 * DAY)
    assert past.following is None
    assert past.earlier == MAX_COUNTED


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "set either `cron` or `interval`"),
        ({"cron": "@daily", "interval": "1h"}, "set either `cron` or `interval`"),
        ({"cron": "99 * * * *"}, "the minute field '99' is invalid"),
        ({"interval": "9s"}, "use whole seconds, from 10s to 366d"),
        ({"interval": "10500ms"}, "use whole seconds"),
        ({"cron": "@daily", "timezone": "Europe/Berln"}, "did you mean 'Europe/Berlin'"),
        ({"cron": "@daily", "timezone": "../etc/passwd"}, "use a time zone"),
        ({"interval": "1h", "jitter": "1h"}, "the runs are 1h apart; use a shorter jitter"),
        ({"cron": "*/5 * * * *", "jitter": "10m"}, "the runs are 5m apart"),
        ({"cron": "@daily", "starts_at": BEGIN, "ends_at": BEGIN}, "after `starts_at`"),
        ({"cron": "@daily", "starts_at": datetime(2026, 1, 1)}, "timezone"),  # noqa: DTZ001
        ({"cron": "@daily", "overlap": "both"}, "skip, queue"),
        ({"cron": "@daily", "persona": "boss"}, "analyst"),
        ({"interval": 900}, "a number with a unit"),
        ({"cron": "@daily", "failure_limit": 0}, "greater than or equal to 1"),
        ({"cron": "@daily", "tags": ["two words"]}, "use 1 to 50 letters, digits"),
        ({"cron": "@daily", "timeout": "2d"}, "from 10s to 1d"),
    ],
)
def test_a_definition_that_makes_no_sense_is_refused(given, words):
    with pytest.raises(ValidationError) as refused:
        ScheduleDefinition(query="new logins", **given)
    assert words in str(refused.value)


def test_a_definition_comes_back_as_it_was_stored():
    made = ScheduleDefinition(
        query="new logins",
        interval="PT90M",
        jitter="30s",
        starts_at=BEGIN,
        persona="THREAT-hunter",
        tags=["night", "vpn"],
    )
    stored = made.as_json()
    assert stored["interval"] == "PT1H30M"
    assert stored["tags"] == ["night", "vpn"]
    assert ScheduleDefinition.model_validate(stored) == made


rules = st.one_of(
    st.integers(10, 200_000).map(lambda seconds: {"interval": f"{seconds}s"}),
    st.sampled_from(["* * * * *", "*/7 * * * *", "0 2 * * *", "30 1,2 * * 1-5"]).map(
        lambda text: {"cron": text, "timezone": "Europe/Berlin"}
    ),
)
moments = st.integers(0, 400 * 86_400).map(lambda seconds: BEGIN + timedelta(seconds=seconds))


@given(rules, st.sampled_from([None, "5s"]), moments, moments)
def test_whatever_is_missed_nothing_is_lost_or_counted_twice(rule, jitter, one, other):
    made = recurrence(**rule, jitter=jitter)
    first, now = made.next(min(one, other)), max(one, other)
    past = made.past(first.at, now)
    due = list(islice(made.after(first.at - timedelta(seconds=1)), MAX_COUNTED + 1))
    due = [fire for fire in due if fire.due <= now]
    if len(due) <= MAX_COUNTED:
        assert past.earlier + (past.latest is not None) == len(due)
        ends = [end for end in (past.until, past.latest and past.latest.at) if end is not None]
        assert ends == [fire.at for fire in due[-2:]]
    if past.latest is not None:
        assert past.latest.due <= now
        assert all(a.at < b.at for a, b in pairwise([past.latest, past.following]))
    assert past.following.due > now
