"""Pagination of CrowdSec alerts, newest first."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from tocsin import Window
from tocsin_connectors.siem.crowdsec.pagination import CrowdSecCursor

START = datetime(2026, 11, 20, 12, tzinfo=UTC)
SLACK = timedelta(seconds=3)
"""So much later than asked for an alert may be that the server shows."""

bursts = st.lists(st.tuples(st.integers(-3_600, 3_600), st.integers(1, 400)), max_size=6)


def cut(moment: datetime) -> datetime:
    return moment.replace(microsecond=0)


@given(bursts=bursts, limit=st.sampled_from([1, 10, 100]), hour=st.integers(-1, 1))
def test_every_alert_is_found_within_the_page_size_limit(bursts, limit, hour):
    created = sorted(
        (
            START + timedelta(seconds=second, milliseconds=number)
            for second, size in bursts
            for number in range(size)
        ),
        reverse=True,
    )
    window = Window(START + hour * timedelta(hours=1), START + (hour + 1) * timedelta(hours=1))
    step: CrowdSecCursor | None = CrowdSecCursor.first(window, limit)
    found: set[datetime] = set()
    while step is not None:
        matching = [moment for moment in created if moment < step.until + SLACK]
        assert step.size - len(matching) < 100 or step.size <= 100
        shown = matching[: step.size]
        found.update(shown)
        following = step.following([cut(moment) for moment in shown], window, limit)
        assert following is None or (-following.until.timestamp(), following.size) > (
            -step.until.timestamp(),
            step.size if following.until == step.until else 0,
        )
        assert following is None or CrowdSecCursor.decode(following.encode()) == following
        step = following
    assert {moment for moment in created if moment in window} <= found


def test_quiet_window_requests_five_alerts():
    window = Window(START, START + timedelta(hours=1))
    step = CrowdSecCursor.first(window, 100)
    assert step == CrowdSecCursor(window.end, 5)
    assert step.following([START - timedelta(hours=n) for n in range(1, 6)], window, 100) is None


def test_alerts_without_creation_time_do_not_end_the_pages():
    window = Window(START, START + timedelta(hours=1))
    assert CrowdSecCursor(window.end, 5).following([None] * 5, window, 100) == CrowdSecCursor(
        window.end, 10
    )
