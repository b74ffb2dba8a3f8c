"""What a browser keeps while somebody signs in elsewhere, and brings back once."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from functools import partial
from hashlib import sha256

from cryptography.fernet import Fernet, MultiFernet
from hypothesis import given
from hypothesis import strategies as st

from tocsin.credentials.oidc_code_flow import LONGEST_PLACE, SignInAttempts
from tocsin.testing import ManualClock

KEY = partial(MultiFernet, [Fernet(urlsafe_b64encode(b"k" * 32))])
OTHER = partial(MultiFernet, [Fernet(urlsafe_b64encode(b"x" * 32))])


def test_an_attempt_comes_back_as_it_was_once_and_on_any_node(clock):
    one, other = SignInAttempts(KEY, clock), SignInAttempts(KEY, clock)
    attempt, sealed = one.begin("/graph")
    assert other.take(sealed, attempt.state) == attempt
    assert other.take(sealed, attempt.state) is None


def test_another_key_opens_nothing(clock):
    attempt, sealed = SignInAttempts(KEY, clock).begin("/")
    assert SignInAttempts(OTHER, clock).take(sealed, attempt.state) is None


def test_another_state_takes_nothing_and_uses_nothing_up(clock):
    attempts = SignInAttempts(KEY, clock)
    (first, sealed), (second, _) = attempts.begin("/"), attempts.begin("/")
    assert attempts.take(sealed, second.state) is None
    assert attempts.take(sealed, first.state) == first


def test_an_attempt_lasts_ten_minutes(clock):
    attempts = SignInAttempts(KEY, clock)
    attempt, sealed = attempts.begin("/")
    other, kept = attempts.begin("/")
    clock.advance(minutes=10)
    assert attempts.take(sealed, attempt.state) == attempt
    clock.advance(seconds=1)
    assert attempts.take(kept, other.state) is None


def test_the_challenge_is_the_verifiers_digest(clock):
    attempt, _ = SignInAttempts(KEY, clock).begin("/")
    digest = urlsafe_b64encode(sha256(attempt.verifier.encode()).digest()).decode()
    assert attempt.challenge == digest.rstrip("=")


def test_the_longest_place_still_fits_into_a_cookie(clock):
    _, sealed = SignInAttempts(KEY, clock).begin("/" * LONGEST_PLACE)
    assert len(sealed) < 4_000
    attempt, _ = SignInAttempts(KEY, clock).begin("/" * (LONGEST_PLACE + 1))
    assert attempt.place == "/"


@given(st.text() | st.text(max_size=20).map(lambda text: text * 500), st.text())
def test_no_other_text_is_an_attempt(sealed, state):
    assert SignInAttempts(KEY, ManualClock()).take(sealed, state) is None
