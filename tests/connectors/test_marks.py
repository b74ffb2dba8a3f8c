"""Comments that are known again, and in which Markdown means nothing."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from tocsin_connectors.siem.idempotency_marker import add_marker, fence_text, has_marker

KEY = "tocsin:ses_01:1:7"
keys = st.from_regex(r"[a-z_:0-9]{1,20}", fullmatch=True)


@given(st.text(), keys, st.sampled_from(["", "\n", "  \n"]))
def test_a_marked_comment_is_known_again(text, key, trailing):
    assert has_marker(key, ["another", add_marker(text, key) + trailing])


@given(st.text(), keys, keys)
def test_the_mark_of_one_key_is_none_of_another(text, key, other):
    assert has_marker(other, [add_marker(text, key)]) is (key == other)


def test_a_comment_that_quotes_a_mark_is_not_the_comment():
    assert not has_marker(KEY, [f"they wrote {add_marker('x', KEY)}, and more", f"[tocsin {KEY}]"])


@given(st.text(alphabet="`a \n"))
def test_no_line_of_a_text_ends_its_block(text):
    fence, *lines, end = fence_text(text).split("\n")
    assert fence == end
    assert re.fullmatch("`{3,}", fence)
    assert "\n".join(lines) == text
    assert fence not in text
