"""How long a provider is left alone, by what stopped it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin import Broken, CredentialsRefused, Refused, TryLater
from tocsin.incidents.sync.pauses import LONGEST_AFTER_REFUSED, compute_pause

MINUTE = timedelta(minutes=1)


def test_without_failure_the_next_poll_is_the_next():
    assert compute_pause([], 0, MINUTE) == MINUTE


@pytest.mark.parametrize("error", [TryLater("busy"), Broken("500"), Refused("no"), KeyError("x")])
def test_the_pause_doubles_up_to_a_quarter_of_an_hour(error):
    minutes = [compute_pause([error], failures, MINUTE) / MINUTE for failures in range(1, 7)]
    assert minutes == [2, 4, 8, 15, 15, 15]


def test_refused_credentials_are_tried_ever_more_seldom():
    refused = [CredentialsRefused("no")]
    assert compute_pause(refused, 1, timedelta(seconds=5)) == 2 * MINUTE
    assert compute_pause(refused, 20, timedelta(seconds=5)) == LONGEST_AFTER_REFUSED


def test_the_delay_that_was_asked_for_is_kept_however_long():
    asked = [TryLater("busy", after=timedelta(hours=3)), TryLater("busy")]
    assert compute_pause(asked, 1, MINUTE) == timedelta(hours=3)


@given(
    failures=st.integers(1, 1000),
    poll=st.timedeltas(timedelta(seconds=1), timedelta(days=2)),
    jitter=st.floats(0, 1),
)
def test_a_pause_is_never_shorter_than_a_poll_and_never_unbounded(failures, poll, jitter):
    pause = compute_pause([TryLater("busy")], failures, poll, jitter=jitter)
    assert poll <= pause <= max(poll, 15 * MINUTE) * 1.25 + timedelta(microseconds=1)
