"""Coverage of the last weeks by day."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from tocsin.accounting import MAX_LISTED
from tocsin.web.console.coverage_calendar import CELL, WEEKS, build_calendars

NOW = "2026-11-25T12:00:00.000Z"  # a Wednesday


def calendars(*gaps: tuple[str, str], since: str = "2026-11-01T00:00:00.000Z"):
    parts = {"provider": "siem", "stream": "alerts", "source": None}
    proof = {
        "until": NOW,
        "coverage": [{**parts, "from": since, "to": NOW}],
        "gaps": [{**parts, "from": begin, "to": end} for begin, end in gaps],
        "lost": [],
    }
    streams = [
        {"name": "alerts", "covered_until": NOW},
        {"name": "file", "covered_until": None},
    ]
    return build_calendars(proof, {"name": "siem", "streams": streams})


def test_each_day_says_how_much_of_it_is_missing():
    [calendar] = calendars(
        ("2026-11-23T23:30:00Z", "2026-11-24T03:00:00Z"), since="2026-11-10T06:00:00Z"
    )
    of = {day.day: day for day in calendar.days}
    assert len(of) == 7 * (WEEKS - 1) + 3
    assert (of["2026-11-25"].kind, of["2026-11-25"].words) == ("read", "2026-11-25: complete")
    assert of["2026-11-23"].words == "2026-11-23: 30 min missing"
    assert (of["2026-11-23"].kind, of["2026-11-24"].kind) == ("missing-1", "missing-2")
    assert (of["2026-11-09"].kind, of["2026-11-10"].kind) == ("unread", "read")
    assert [day.day for day in calendar.faulty] == ["2026-11-23", "2026-11-24"]
    assert of["2026-11-23"].x == 0


def test_a_day_is_not_complete_if_more_is_missing_than_the_proof_lists():
    gap = ("2026-11-24T01:00:00Z", "2026-11-24T01:01:00Z")
    [listed], [cut] = calendars(*[gap] * (MAX_LISTED - 1)), calendars(*[gap] * MAX_LISTED)
    for calendar, words in ((listed, "complete"), (cut, "not known")):
        assert calendar.is_cut is (calendar is cut)
        assert calendar.days[-1].words == f"2026-11-25: {words}"
    assert cut.days[-2].words == "2026-11-24: at least 1000 min missing"


@given(st.lists(st.tuples(st.integers(-999, 999), st.integers(0, 999)), max_size=9))
def test_cells_stay_in_the_calendar_whatever_is_missing(gaps):
    start = datetime(2026, 11, 10, tzinfo=UTC)
    found = [
        (start + timedelta(hours=begin), start + timedelta(hours=begin + length))
        for begin, length in gaps
    ]
    [calendar] = calendars(*((begin.isoformat(), end.isoformat()) for begin, end in found))
    assert all(0 <= day.x <= calendar.width - CELL for day in calendar.days)
    assert all(0 <= day.y <= calendar.height - CELL for day in calendar.days)
    first = datetime.fromisoformat(f"{calendar.days[0].day}T00:00:00Z")
    is_inside = any(
        end > max(begin, first) and begin < datetime.fromisoformat(NOW) for begin, end in found
    )
    assert is_inside <= bool(calendar.faulty)


async def test_a_page_shows_it_or_says_that_there_is_no_such_provider(person):
    assert "There is no provider 'siem' in plugins.toml." in await person.text(
        "/providers/siem/coverage", 404
    )
