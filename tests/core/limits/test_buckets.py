"""A bucket grants what is due, exactly when it is due, and never more."""

from __future__ import annotations

import math
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from fractions import Fraction
from itertools import combinations_with_replacement

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tocsin.limits import Quota, QuotaStatus, TokenBuckets

QUOTA = Quota(per_minute=60, burst=5)
KEY = "key:0123456789abcdef"

quotas = st.builds(Quota, st.integers(1, 100_000), st.integers(1, 200))
# Quarters, which a float holds exactly
costs = st.integers(0, 40).map(lambda quarters: quarters / 4)
durations = st.integers(0, 10**8)  # microseconds
steps = st.lists(
    st.one_of(
        st.tuples(st.just("take"), costs),
        st.tuples(st.just("give_back"), costs),
        st.tuples(st.just("drain"), st.integers(0, 500)),
        st.tuples(st.just("look"), st.none()),
        st.tuples(st.just("advance"), durations),
    ),
    max_size=30,
)
# The clock only ever moves on, and every example has buckets of its own
with_one_clock = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


class Model:
    """A token bucket as the textbook has it, in fractions."""

    def __init__(self, quota: Quota) -> None:
        self.burst = quota.burst
        self.rate = Fraction(quota.per_minute, 60)
        self.tokens = Fraction(quota.burst)

    def advance(self, microseconds):
        filled = Fraction(microseconds, 1_000_000) * self.rate
        self.tokens = min(self.tokens + filled, Fraction(self.burst))

    def take(self, cost):
        cost = min(Fraction(cost), self.burst)
        allowed = cost <= self.tokens
        if allowed:
            self.tokens -= cost
        return self._standing(0 if allowed else cost - self.tokens)

    def look(self, _):
        return self._standing(max(1 - self.tokens, 0))

    def give_back(self, cost):
        self.tokens = min(self.tokens + Fraction(cost), Fraction(self.burst))

    def drain(self, amount):
        self.tokens = max(self.tokens - amount, Fraction(-self.burst))

    def _standing(self, lacking):
        return QuotaStatus(
            allowed=not lacking,
            remaining=max(math.floor(self.tokens), 0),
            reset_after=math.ceil((self.burst - self.tokens) / self.rate),
            retry_after=math.ceil(lacking / self.rate),
        )


@pytest.fixture
def make(clock):
    def make(quota=QUOTA, **options):
        return TokenBuckets("credential", quota, clock, **options)

    return make


@given(quota=quotas, steps=steps)
@with_one_clock
def test_a_bucket_does_what_the_textbook_says(make, clock, quota, steps):
    buckets, model = make(quota), Model(quota)
    for verb, value in steps:
        if verb == "advance":
            clock.advance(microseconds=value)
            model.advance(value)
        elif verb == "look":
            assert buckets.look(KEY) == model.look(value)
        else:
            assert getattr(buckets, verb)(KEY, value) == getattr(model, verb)(value)


@given(quota=quotas, takes=st.lists(st.tuples(durations, costs), max_size=20))
@with_one_clock
def test_no_window_lets_through_more_than_a_burst_and_what_was_filled(make, clock, quota, takes):
    buckets = make(quota)
    granted: list[tuple[datetime, float]] = []
    for duration, cost in takes:
        clock.advance(microseconds=duration)
        if buckets.take(KEY, cost).allowed:
            granted.append((clock.now(), min(cost, quota.burst)))
    for first, last in combinations_with_replacement(range(len(granted)), 2):
        window = granted[last][0] - granted[first][0]
        filled = Fraction(window // timedelta(microseconds=1), 60_000_000) * quota.per_minute
        assert sum(Fraction(cost) for _, cost in granted[first : last + 1]) <= quota.burst + filled


@given(quota=quotas, owed=st.integers(0, 200), cost=costs)
@with_one_clock
def test_retry_after_is_the_first_whole_second_at_which_it_is_granted(
    make, clock, quota, owed, cost
):
    buckets = make(quota)
    buckets.drain(KEY, quota.burst + owed)
    refused = buckets.take(KEY, cost)
    if refused.allowed:
        assert cost == owed == refused.retry_after == 0
        return
    assert refused.retry_after >= 1
    clock.advance(seconds=refused.retry_after - 1)
    assert refused.retry_after == 1 or not buckets.take(KEY, cost).allowed
    clock.advance(seconds=1)
    assert buckets.take(KEY, cost).allowed


def test_what_is_left_and_when_it_is_full_is_said_in_whole_numbers(make, clock):
    buckets = make()
    assert buckets.take(KEY) == QuotaStatus(True, 4, 1, 0)
    assert buckets.take(KEY, 4) == QuotaStatus(True, 0, 5, 0)
    clock.advance(milliseconds=1)
    assert buckets.take(KEY, 2) == QuotaStatus(False, 0, 5, 2)
    assert buckets.look(KEY) == QuotaStatus(False, 0, 5, 1)
    clock.advance(seconds=5)
    assert buckets.look(KEY) == QuotaStatus(True, 5, 0, 0)


def test_a_cost_above_the_burst_is_granted_when_the_bucket_is_full(make, clock):
    buckets = make()
    assert buckets.take(KEY, 50).remaining == 0
    assert buckets.take(KEY, 50).retry_after == QUOTA.burst
    clock.advance(seconds=QUOTA.burst)
    assert buckets.take(KEY, 50).allowed


def test_keys_do_not_share_a_bucket(make):
    buckets = make()
    buckets.take("one", QUOTA.burst)
    assert not buckets.look("one").allowed
    assert buckets.look("other").remaining == QUOTA.burst


def test_long_keys_that_begin_alike_do_not_share_a_bucket(make):
    buckets = make()
    buckets.take("x" * 1000 + "1", QUOTA.burst)
    assert not buckets.take("x" * 1000 + "1").allowed
    assert buckets.take("x" * 1000 + "2").allowed


@pytest.fixture
def restless():
    """Let the interpreter change threads as often as it can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-9)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("restless")
def test_many_threads_are_granted_the_burst_and_no_more_and_each_token_is_told_once(make):
    buckets = make(Quota(per_minute=1, burst=10_000))

    def take_and_collect(_):
        granted = told = 0
        for _ in range(2_000):
            granted += buckets.take(KEY).allowed
            told += buckets.collect().get(KEY, 0)
        return granted, told

    with ThreadPoolExecutor(8) as threads:
        granted, told = zip(*threads.map(take_and_collect, range(8)), strict=True)
    assert sum(granted) == sum(told) == 10_000


def test_the_keys_that_were_used_last_are_kept(make):
    buckets = make(size=2)
    for key in ("a", "b"):
        buckets.take(key, QUOTA.burst)
    assert not buckets.take("a").allowed  # being refused, and being looked at, is being used
    buckets.take("c", QUOTA.burst)
    assert not buckets.look("a").allowed
    assert not buckets.look("c").allowed
    assert buckets.look("b").remaining == QUOTA.burst
    assert buckets.collect() == dict.fromkeys("ac", QUOTA.burst)


def test_keys_without_end_take_no_more_memory(make):
    buckets = make(size=10)
    for number in range(1000):
        buckets.take(str(number))
        buckets.drain(f"elsewhere {number}", 1)
    assert len(buckets._full_at) == 10
    assert buckets._taken.keys() <= buckets._full_at.keys()


def test_a_clock_that_jumps_back_holds_nobody_up(make, clock):
    buckets = make()
    buckets.take(KEY, QUOTA.burst)
    clock.advance(days=-365)
    assert buckets.take(KEY) == QuotaStatus(False, 0, QUOTA.burst, 1)
    clock.advance(seconds=1)
    assert buckets.take(KEY).allowed
    assert not buckets.take(KEY).allowed


def test_a_clock_that_jumps_ahead_fills_the_bucket_and_no_more(make, clock):
    buckets = make()
    buckets.take(KEY, QUOTA.burst)
    clock.advance(days=365)
    assert buckets.look(KEY).remaining == QUOTA.burst


def test_what_was_taken_is_told_once_and_fractions_when_they_are_whole(make, clock):
    buckets = make()
    buckets.take("a", 2)
    buckets.take("b", 0.75)
    assert buckets.collect() == {"a": 2}
    assert buckets.collect() == {}
    buckets.take("b", 0.5)
    buckets.give_back("a", 1)
    assert buckets.collect() == {"a": -1, "b": 1}


def test_what_was_refused_or_drained_was_not_taken(make):
    buckets = make()
    buckets.drain(KEY, QUOTA.burst)
    buckets.take(KEY)
    assert buckets.collect() == {}


def test_what_was_taken_and_given_back_was_not_taken(make):
    buckets = make()
    buckets.take(KEY)
    buckets.give_back(KEY)
    assert buckets.collect() == {}
