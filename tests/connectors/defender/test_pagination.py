"""Pagination of a list whose offset is limited."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.connectors.microsoft.cloud import stamp

from tocsin import Broken, Window
from tocsin_connectors.siem.defender.pagination import MAX_SKIP, DefenderCursor

from .simulator import bound

START = datetime(2026, 11, 20, 12, tzinfo=UTC)
WINDOW = Window(START, START + timedelta(hours=1))
MOMENTS = st.lists(
    st.tuples(st.integers(0, 40), st.integers(1, 30)), max_size=8
)  # at which microsecond, how many


def listed(moments: list[datetime]) -> list[dict]:
    return [
        {"id": str(place), "lastUpdateDateTime": stamp(at)}
        for place, at in enumerate(sorted(moments))
    ]


def asked(
    records: list[dict], step: DefenderCursor, size: int, digits: int = 7
) -> tuple[list[dict], bool]:
    """Return the page that Graph answers, and whether there are more."""
    assert step.skip <= MAX_SKIP
    since = bound(step.since, digits)
    found = [record for record in records if bound(record["lastUpdateDateTime"], 7) >= since]
    page = found[step.skip : step.skip + size]
    return page, step.skip + len(page) < len(found)


def walked(records: list[dict], size: int, digits: int = 7) -> tuple[set[str], int]:
    step: DefenderCursor | None = DefenderCursor.first(WINDOW)
    seen, steps = set[str](), set[str]()
    while step is not None:
        assert str(step.encode()) not in steps, "the same step again"
        steps.add(str(step.encode()))
        page, more = asked(records, DefenderCursor.decode(step.encode()), size, digits)
        seen |= {record["id"] for record in page}
        step = step.following(page, more=more)
    return seen, len(steps)


@given(moments=MOMENTS, size=st.integers(1, 12), digits=st.sampled_from([7, 6, 3, 0]))
def test_every_record_is_seen_despite_equal_times(moments, size, digits):
    at = [START + timedelta(microseconds=moment) for moment, count in moments for _ in range(count)]
    records = listed(at)
    seen, _ = walked(records, size, digits)
    assert seen == {record["id"] for record in records}


def test_pages_advance_by_time():
    records = listed([START + timedelta(seconds=number) for number in range(1_000)])
    seen, steps = walked(records, 50)
    assert len(seen) == 1_000
    assert steps <= 1_000 / 49 + 1


def test_changes_during_offset_paging_are_detected():
    records = listed([START] * 10)
    step = DefenderCursor.first(WINDOW)
    for _ in range(2):
        page, more = asked(records, step, 4)
        step = step.following(page, more=more)
    page, more = asked(records[2:], step, 4)  # the first two have changed since
    with pytest.raises(Broken, match="changed during the read"):
        step.following(page, more=more)


def test_offset_stays_below_the_limit():
    records = listed([START] * 600)
    with pytest.raises(Broken, match="more than 500"):
        walked(records, 50)


def test_wrong_order_is_broken_only_if_more_pages_follow():
    step, records = (
        DefenderCursor.first(WINDOW),
        listed([START, START + timedelta(seconds=1)])[::-1],
    )
    assert step.following(records, more=False) is None
    with pytest.raises(Broken, match="not sorted"):
        step.following(records, more=True)


@pytest.mark.parametrize("time", [None, 7, "noon", "2026-11-20T12:00:00", {}])
def test_incidents_without_time_are_skipped(time):
    odd = {"id": "odd", "lastUpdateDateTime": time}
    usual = listed([START, START + timedelta(seconds=1)])
    step = DefenderCursor.first(WINDOW).following([usual[0], odd, usual[1], odd], more=True)
    assert step == DefenderCursor(usual[1]["lastUpdateDateTime"])
    assert DefenderCursor.first(WINDOW).following([odd, odd], more=True) == DefenderCursor(
        "2026-11-20T12:00:00Z", 1, "odd"
    )


def test_empty_page_keeps_the_cursor():
    step = DefenderCursor.first(WINDOW)
    assert step.following([], more=True) == step  # which whoever turns the pages takes for a circle
