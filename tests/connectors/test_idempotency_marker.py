"""Idempotency markers in comments, and fences around text."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from tocsin_connectors.siem.idempotency_marker import (
    add_marker,
    fence_text,
    has_marker,
    read_comments,
)

KEY = "tocsin:ses_01:1:7"
keys = st.from_regex(r"[a-z_:0-9]{1,20}", fullmatch=True)


@given(st.text(), keys, st.sampled_from(["", "\n", "  \n"]))
def test_marked_comments_are_recognized(text, key, trailing):
    assert has_marker(key, ["another", add_marker(text, key) + trailing])


@given(st.text(), keys, keys)
def test_markers_belong_to_one_key(text, key, other):
    assert has_marker(other, [add_marker(text, key)]) is (key == other)


def test_quoted_markers_do_not_count():
    assert not has_marker(KEY, [f"they wrote {add_marker('x', KEY)}, and more", f"[tocsin {KEY}]"])


@given(st.text(alphabet="`a \n"))
def test_no_line_of_a_text_ends_its_fence(text):
    fence, *lines, end = fence_text(text).split("\n")
    assert fence == end
    assert re.fullmatch("`{3,}", fence)
    assert "\n".join(lines) == text
    assert fence not in text


def test_markers_survive_in_long_comments():
    records = [{"comment": None}, {}, {"comment": add_marker("a word " * 5_000, "key")}]
    assert has_marker("key", read_comments(records, "comment"))
    assert not has_marker("key", read_comments(records, "note"))
