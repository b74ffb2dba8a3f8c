"""Comments, whose marks are at their ends."""

from __future__ import annotations

from tocsin_connectors.siem.comments import comments_in
from tocsin_connectors.siem.marks import is_written, marked


def test_a_comment_is_known_however_long_it_is():
    records = [{"comment": None}, {}, {"comment": marked("a word " * 5_000, "key")}]
    assert is_written("key", comments_in(records, "comment"))
    assert not is_written("key", comments_in(records, "note"))
