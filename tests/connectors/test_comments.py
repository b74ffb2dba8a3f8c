"""Comments, whose marks are at their ends."""

from __future__ import annotations

from tocsin_connectors.siem.idempotency_marker import add_marker, has_marker, read_comments


def test_a_comment_is_known_however_long_it_is():
    records = [{"comment": None}, {}, {"comment": add_marker("a word " * 5_000, "key")}]
    assert has_marker("key", read_comments(records, "comment"))
    assert not has_marker("key", read_comments(records, "note"))
