"""Pagination of Sentinel incidents, for any size of the linked pages."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.connectors.microsoft.cloud import stamp

from tocsin import Broken, Window
from tocsin_connectors.siem.sentinel.pagination import SentinelCursor

START = datetime(2026, 11, 20, 12, tzinfo=UTC)
WINDOW = Window(START, START + timedelta(hours=1))


def listed(*seconds: float) -> list[dict]:
    moments = sorted(START + timedelta(seconds=second) for second in seconds)
    return [
        {"name": str(place), "properties": {"lastModifiedTimeUtc": stamp(at)}}
        for place, at in enumerate(moments)
    ]


def asked(records: list[dict], step: SentinelCursor, size: int) -> tuple[list[dict], str | None]:
    """Return the page that Azure answers, and its link, which counts what is before the next."""
    since = datetime.fromisoformat(step.since)
    found = [
        record
        for record in records
        if datetime.fromisoformat(record["properties"]["lastModifiedTimeUtc"]) >= since
    ]
    start = int(step.link or 0)
    more = start + size < len(found)
    return found[start : start + size], str(start + size) if more else None


@given(st.lists(st.floats(0, 20), max_size=40), st.integers(1, 7))
def test_every_incident_is_listed_and_paging_terminates(seconds, size):
    records = listed(*seconds)
    step: SentinelCursor | None = SentinelCursor.first(WINDOW)
    seen, steps = set[str](), set[str]()
    while step is not None:
        assert str(step) not in steps, "the same step again"
        steps.add(str(step))
        page, link = asked(records, SentinelCursor.decode(step.encode()), size)
        seen |= {item["name"] for item in page}
        step = step.following(page, link)
    assert seen == {record["name"] for record in records}


@pytest.mark.parametrize("token", ["/subscriptions/s?$skipToken=x", [], ["a", 7], {"since": "a"}])
def test_token_of_another_version_is_recognized(token):
    with pytest.raises(Broken, match="another version"):
        SentinelCursor.decode(token)


def test_next_link_is_followed_only_within_a_second():
    first = SentinelCursor.first(WINDOW)
    assert first.following(listed(0.1, 0.9), "a") == SentinelCursor(first.since, "a")
    assert first.following(listed(0.1, 1.9), "a") == SentinelCursor("2026-11-20T12:00:01Z")
    assert first.following(listed(0.1, 1.9), None) is None


@pytest.mark.parametrize("told", [None, 7, "noon", {}])
def test_missing_times_or_wrong_order_use_the_next_link(told):
    first = SentinelCursor.first(WINDOW)
    odd = {"name": "odd", "properties": {"lastModifiedTimeUtc": told}}
    assert first.following([odd], "a") == SentinelCursor(first.since, "a")
    assert first.following([], "a") == SentinelCursor(first.since, "a")
    assert first.following(listed(1, 5)[::-1], "a") == SentinelCursor(first.since, "a")
