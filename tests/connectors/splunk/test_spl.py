"""SPL searches: external values are always quoted."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin import Refused, Window
from tocsin_connectors.siem.splunk import spl

from .spl_reader import SplError, commands, condition, literals

START = datetime(2026, 11, 20, 9, tzinfo=UTC)
WINDOW = Window(START, START + timedelta(hours=1))
HOSTILE = (
    'a" OR "1"="1',
    "a\\",
    'a\\" | delete',
    "a | outputlookup users",
    "a] [search index=_audit",
    "a `notable`",
    "a``` comment",
    "a* OR index=*",
    "$a$ %20 %2A",
    "a\nb\tc",
    "NOT a",
)
VALUES = st.text(min_size=1, max_size=60) | st.sampled_from(HOSTILE)
NAMES = ("src", "dest")


def has_letter(value: str) -> bool:
    return re.search("[A-Za-z0-9]", value) is not None


def shape(text: str) -> str:
    """Return a search with its patterns and literals taken out."""
    return re.sub(r'="[A-Za-z0-9._:@/*-]+"', "=PATTERN", re.sub(spl_literal, "LITERAL", text))


spl_literal = r'urldecode\("[A-Za-z0-9%]*"\)'


@given(VALUES.filter(has_letter))
def test_values_cannot_change_a_search(value):
    searches = [
        spl.build_events_search(item, NAMES, ["*"], WINDOW, 5).spl
        for item in (value, "203.0.113.7")
    ]
    assert shape(searches[0]) == shape(searches[1])
    assert [shape(command) for command in commands(searches[0])] == [
        shape(command) for command in commands(searches[1])
    ]
    assert not set(searches[0]) & set("`[]\\$\n")


@given(VALUES)
def test_quoted_values_round_trip(value):
    assert literals(spl.quote_value(value)) == [value]


@given(VALUES.filter(has_letter), VALUES)
def test_results_are_filtered_by_value(value, other):
    _, where, *_ = commands(spl.build_events_search(value, NAMES, ["*"], WINDOW, 5).spl)
    exactly = condition(where.removeprefix("where "))
    assert exactly({"src": value})
    assert exactly({"dest": [other, value]})
    assert exactly({"src": other}) == (other.lower() == value.lower())
    assert not exactly({"user": value})


@given(VALUES.filter(has_letter))
def test_pattern_matches_the_value(value):
    found = condition(f"src={spl.build_pattern(value)}")
    assert found({"src": value})


def test_plain_value_is_a_search_term():
    assert spl.build_pattern("203.0.113.7") == '"203.0.113.7"'
    assert spl.build_pattern("CORP\\ann") == '"CORP*ann"'


@pytest.mark.parametrize("value", ["*", "", "-", "' '", "***", "鐘"])
def test_values_that_match_everything_are_refused(value):
    with pytest.raises(Refused, match="no letter or digit"):
        spl.build_pattern(value)


@given(st.lists(VALUES, min_size=1, max_size=5))
def test_finding_search_lists_fields(names):
    search = spl.build_findings_search(names, START)
    head, where, added, left_out = commands(search.spl)
    assert (head, left_out) == ("search `notable`", "fields - _raw orig_raw")
    assert added == "eval tocsin_indexed=_indextime"
    assert literals(where) == names
    assert re.sub(spl_literal, "", where.removeprefix("where ")) == " OR ".join(
        ["event_id=="] * len(names)
    )


def test_window_is_half_open_in_seconds():
    search = spl.build_indexed_search(WINDOW, timedelta(days=1))
    assert "where tocsin_indexed>=1795165200 AND tocsin_indexed<1795168800" in search.spl
    assert search.bounds["index_earliest"] == "1795165200"
    assert search.bounds["index_latest"] == "1795168801"  # whichever way Splunk takes its end
    assert search.bounds["earliest_time"] == "1795078800"


def test_fractions_of_seconds_are_kept():
    window = Window(START + timedelta(milliseconds=250), START + timedelta(seconds=1))
    search = spl.build_events_search("a", NAMES, ["main", "dns_*"], window, 5)
    assert search.bounds == {"earliest_time": "1795165200.25", "latest_time": "1795165201"}
    assert search.spl.startswith("search (index=main OR index=dns_*) NOT index=notable (")


def test_test_parser_rejects_other_syntax():
    for text in ('src="a" OR delete', 'src=="a"', 'src="a b"', "tocsin_indexed>1", ""):
        with pytest.raises(SplError):
            condition(text)
