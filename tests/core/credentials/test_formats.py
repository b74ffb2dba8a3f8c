"""An API key tells by itself whether it was mistyped."""

from __future__ import annotations

import re
from time import perf_counter

import pytest

from tocsin.credentials import generate_key, parse_key

VALUE, TEXT = generate_key()

# Written once and kept: a key of today must still be one tomorrow.
KEPT = "sk_live_0123456789ABCDEF_" + "a" * 43 + "200Q0V"


def test_a_generated_key_has_the_documented_shape():
    shape = r"sk_live_[0-9A-Za-z]{16}_[0-9A-Za-z]{43}[0-9A-Za-z]{6}"
    assert re.fullmatch(shape, TEXT)


def test_what_is_generated_is_parsed():
    assert parse_key(TEXT) == VALUE


def test_the_checksum_stays_what_it_was():
    kept = parse_key(KEPT)
    assert kept is not None
    assert (kept.identifier, kept.secret) == ("0123456789ABCDEF", "a" * 43)


def test_every_mistyped_character_is_noticed():
    for place, right in enumerate(TEXT):
        for wrong in {"0", "z", "_"} - {right}:
            assert parse_key(TEXT[:place] + wrong + TEXT[place + 1 :]) is None


def test_a_key_may_begin_with_another_prefix():
    value, text = generate_key("acme_")
    assert parse_key(text) == value
    assert value.prefix == "acme_"


def test_keys_are_never_alike():
    assert len({generate_key()[1] for _ in range(1000)}) == 1000


def test_the_secret_is_not_shown_by_accident():
    assert VALUE.secret not in repr(VALUE)


MALFORMED = {
    "empty": "",
    "truncated": TEXT[:-1],
    "longer": TEXT + "a",
    "no prefix": TEXT.removeprefix("sk_live_"),
    "wrong checksum": TEXT[:-6] + "000000",
    "newline": TEXT[:-1] + "\n",
    "unicode digits": TEXT[:-6] + "٣٣٣٣٣٣",
    "unicode": "sk_live_" + "é" * (len(TEXT) - 8),
    "surrogates": "sk_live_" + "\udcff" * (len(TEXT) - 8),
    "nul": "\0" * len(TEXT),
}


@pytest.mark.parametrize("text", MALFORMED.values(), ids=MALFORMED)
def test_what_is_malformed_is_none(text):
    assert parse_key(text) is None


def test_a_huge_value_costs_no_more_than_a_short_one():
    huge = "sk_live_" + "a" * 10_000_000
    start = perf_counter()
    for _ in range(1000):
        assert parse_key(huge) is None
    assert perf_counter() - start < 0.5
