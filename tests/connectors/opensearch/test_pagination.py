"""Pagination of alerts: unordered lists, by offset, limited to 10,000."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin import Broken, Window
from tocsin_connectors.siem.opensearch import pagination as module
from tocsin_connectors.siem.opensearch.pagination import DetectorCursor, to_milliseconds

START = datetime(2026, 11, 20, 12, tzinfo=UTC)
HOUR = Window(START, START + timedelta(hours=1))
MOST = 60

alerts = st.lists(
    st.tuples(st.sampled_from(["d1", "d2"]), st.integers(0, 2), st.integers(-5, 3_600_005)),
    max_size=150,
)


@given(alerts=alerts, size=st.sampled_from([1, 7, 20]))
def test_every_alert_is_found_for_any_monitors(alerts, size):
    monitors = defaultdict(list)
    for number, (detector, monitor, after) in enumerate(alerts):
        at = to_milliseconds(START) + after
        monitors[detector, monitor].append((at, number))

    def ask(step):
        rows, total = [], 0
        for (detector, _), own in sorted(monitors.items()):
            if detector == step.detectors[0]:
                inside = sorted(record for record in own if step.start <= record[0] <= step.end)
                rows += inside[step.index : step.index + size]  # as old versions put them together
                total += len(inside)
        return rows, total

    found, step, steps = set(), DetectorCursor.beginning(["d1", "d2"], HOUR), 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MAX_ROWS", MOST)
        while step is not None:
            assert step == DetectorCursor.decode(step.encode())
            rows, total = ask(step)
            while step.is_too_large(total):
                step = step.halved()
                rows, total = ask(step)
            found.update(rows)
            step = step.following(len(rows), total, size)
            steps += 1
            assert steps < 5_000
    inside = (item for own in monitors.values() for item in own)
    assert found == {
        value for value in inside if 0 <= value[0] - to_milliseconds(START) < 3_600_000
    }


def test_rows_missing_during_paging_are_detected():
    second = DetectorCursor.beginning(["d1"], HOUR).following(10, 25, 10)
    assert (second.index, second.total) == (10, 25)
    with pytest.raises(Broken, match="24 alerts; previously, there were 25"):
        second.following(10, 24, 10)
    with pytest.raises(Broken, match="0 of 25"):
        DetectorCursor.beginning(["d1"], HOUR).following(0, 25, 10)


def test_time_bounds_are_numeric():
    query = DetectorCursor.beginning(["d1"], HOUR).query
    assert query["startTime"] == 1_795_176_000_000
    assert query["endTime"] == query["startTime"] + 3_599_999
