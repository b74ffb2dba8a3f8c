"""The circuit breaker, as a function of what attempts say."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.delivery.health.breaker import (
    MAX_HOLD,
    AttemptVerdict,
    HealthStatus,
    PausePolicy,
    apply_verdict,
)

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
PATIENCE = PausePolicy(timedelta(minutes=5), 10, timedelta(minutes=1))

seconds = st.integers(0, 10_000).map(lambda n: timedelta(seconds=n))
verdicts = st.sampled_from(
    [verdict for verdict in AttemptVerdict if verdict is not AttemptVerdict.UNWANTED]
)
courses = st.lists(st.tuples(seconds, verdicts, st.none() | seconds), max_size=60)


def after(course, patience=PATIENCE):
    """Return the health and the moment after a course of (time passed, verdict, asked)."""
    health, now = HealthStatus(), NOW
    for passed, verdict, asked in course:
        now += passed
        health = apply_verdict(health, verdict, patience, now, asked)
    return health, now


@given(courses)
def test_a_success_ends_whatever_was(course):
    health, now = after(course)
    assert apply_verdict(health, AttemptVerdict.HEALTHY, PATIENCE, now) == HealthStatus()


@given(courses)
def test_a_pause_needs_both_time_and_number(course):
    health, now = after(course)
    failures, since = 0, None
    for passed, verdict, _ in course:
        if verdict is AttemptVerdict.HEALTHY:
            failures, since = 0, None
        elif verdict is not AttemptVerdict.NOTHING:
            failures += 1
            since = timedelta(0) if since is None else since + passed
        elif since is not None:
            since += passed
    assert health.failures == failures
    if health.is_paused:
        assert failures >= PATIENCE.failures
        assert since >= PATIENCE.period
    assert health.failing_since is None or health.failing_since <= now


@given(courses)
def test_a_paused_destination_is_always_probed_again(course):
    health, now = after(course)
    if health.is_paused:
        assert health.held_until is not None
    if health.held_until is not None:
        assert health.held_until <= now + MAX_HOLD + PATIENCE.probe_interval


def test_steady_failures_pause_and_few_or_short_ones_do_not():
    minute = timedelta(minutes=1)
    assert not after([(minute, AttemptVerdict.FAILING, None)] * 9)[0].is_paused
    assert after([(minute, AttemptVerdict.FAILING, None)] * 10)[0].is_paused
    assert not after([(timedelta(seconds=1), AttemptVerdict.FAILING, None)] * 100)[0].is_paused


def test_what_says_nothing_of_the_receiver_changes_nothing():
    health, now = after([(timedelta(0), AttemptVerdict.FAILING, None)])
    assert apply_verdict(health, AttemptVerdict.NOTHING, PATIENCE, now) == health


@pytest.mark.parametrize(
    ("asked", "held"),
    [(None, 1), (timedelta(seconds=30), 30), (timedelta(days=2), 3600), (timedelta(0), 1)],
)
def test_a_throttled_receiver_is_left_alone_for_as_long_as_it_asks(asked, held):
    health = apply_verdict(HealthStatus(), AttemptVerdict.THROTTLED, PATIENCE, NOW, asked)
    assert health.held_until == NOW + timedelta(seconds=held)


def test_a_receiver_that_stays_throttled_is_left_alone_for_longer_each_time():
    health, now, holds = HealthStatus(), NOW, []
    for _ in range(8):
        health = apply_verdict(health, AttemptVerdict.THROTTLED, PATIENCE, now)
        holds.append((health.held_until - now).total_seconds())
        now = health.held_until
    assert holds == [1, 2, 4, 8, 16, 32, 60, 60]


def test_answers_that_were_under_way_count_as_one_hold():
    health = HealthStatus()
    for _ in range(8):
        health = apply_verdict(health, AttemptVerdict.THROTTLED, PATIENCE, NOW)
    assert (health.holds, health.held_until) == (1, NOW + timedelta(seconds=1))
