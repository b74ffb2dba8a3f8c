"""Typed access to the values of records."""

from __future__ import annotations

import pytest

from tocsin_connectors.siem.records import texts_at

RECORD = {"a": "1", "b": [{"c": ["2", 3, " "]}, {"c": "4"}, "no object"], "d": {"e": {"f": "5"}}}


@pytest.mark.parametrize(
    ("path", "found"),
    [("a", ["1"]), ("b.c", ["2", "4"]), ("d.e.f", ["5"]), ("a.x", []), ("x.y", []), ("d.e", [])],
)
def test_texts_are_found_in_lists_as_well(path, found):
    assert texts_at(RECORD, path) == found
