"""Comments that are known again, and in which Markdown means nothing."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from tocsin_connectors.siem.marks import fenced, is_written, marked

KEY = "tocsin:ses_01:1:7"
keys = st.from_regex(r"[a-z_:0-9]{1,20}", fullmatch=True)


@given(st.text(), keys, st.sampled_from(["", "\n", "  \n"]))
def test_a_marked_comment_is_known_again(text, key, trailing):
    assert is_written(key, ["another", marked(text, key) + trailing])


@given(st.text(), keys, keys)
def test_the_mark_of_one_key_is_none_of_another(text, key, other):
    assert is_written(other, [marked(text, key)]) is (key == other)


def test_a_comment_that_quotes_a_mark_is_not_the_comment():
    assert not is_written(KEY, [f"they wrote {marked('x', KEY)}, and more", f"[tocsin {KEY}]"])


@given(st.text(alphabet="`a \n"))
def test_no_line_of_a_text_ends_its_block(text):
    fence, *lines, end = fenced(text).split("\n")
    assert fence == end
    assert re.fullmatch("`{3,}", fence)
    assert "\n".join(lines) == text
    assert fence not in text
