"""Falcon queries and filters: values are always quoted."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st
from tests.connectors.crowdstrike.languages import Clause, clauses, query, updated_within

from tocsin import Entity, Window
from tocsin_connectors.siem.crowdstrike import pagination, search
from tocsin_connectors.siem.crowdstrike.search import EVENT_FIELDS
from tocsin_connectors.siem.records import format_milliseconds

MILLISECOND = timedelta(milliseconds=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MOMENTS = st.timedeltas(timedelta(days=9_000), timedelta(days=40_000)).map(EPOCH.__add__)


@given(st.text(), st.text())
def test_quoted_values_round_trip(one, other):
    words = f"name:{pagination.quote_value(one)}+cid:!{pagination.quote_value(other)}"
    assert clauses(words) == [Clause("name", "", one), Clause("cid", "!", other)]


@given(MOMENTS, MOMENTS)
def test_filter_truncates_window_to_milliseconds(start, end):
    window = updated_within(pagination.build_update_filter(format_milliseconds(start), end))
    assert timedelta(0) <= start - window.start < MILLISECOND
    assert timedelta(0) <= end - window.end < MILLISECOND


@given(st.sampled_from(sorted(EVENT_FIELDS)), st.text(min_size=1), st.integers(1, 1000), MOMENTS)
def test_query_has_window_and_value_as_argument(kind, value, limit, start):
    window = Window(start, start + timedelta(hours=1, microseconds=7))
    words = search.build_query(Entity(kind, value), window, limit)
    asked = query(words)
    assert (asked.fields, asked.limit) == (EVENT_FIELDS[kind], limit)
    assert timedelta(0) <= asked.window.start - window.start < MILLISECOND
    assert words == search.build_query(Entity(kind, "another"), window, limit)
