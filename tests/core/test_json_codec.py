"""JSON decoding, including truncated text."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin import parse_json

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@given(values)
def test_what_is_json_is_read(value):
    assert parse_json(json.dumps(value).encode()) == value


def test_half_a_character_is_replaced_and_the_rest_kept():
    assert parse_json(rb'{"title": "cut \ud83d", "n": 1}') == {"title": "cut \ufffd", "n": 1}


@pytest.mark.parametrize(
    "content", [b"", b"{", b"<html>", rb'{"a": "\ud83d"', b"\xff", rb'"\ud83d"' + b"[" * 100_000]
)
def test_what_is_not_json_is_a_value_error(content):
    with pytest.raises(ValueError):
        parse_json(content)


def test_what_is_nested_without_end_is_a_value_error():
    with pytest.raises(ValueError):
        parse_json(b"[" * 100_000 + rb'"\ud83d"' + b"]" * 100_000)
