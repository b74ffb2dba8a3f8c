"""The time of a quarantined record is found in what is kept of it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tocsin.incidents.coverage.record_times import find_record_time

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
TIME = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    "content",
    [
        '{"timestamp": "2026-11-21T09:30:00+0000"}',
        '{"@timestamp":"2026-11-21T10:30:00+01:00","time":1}',
        '{"ts": 1795253400.0}',
        '{"time": 1795253400000}',
        '{"time": 1795253400000000000}',
        '{"created_at": "2026-11-21T09:00:00Z", "timestamp": "2026-11-21T09:30:00Z"}',
        '{"alert": {"x": 1}, "timestamp": "2026-11-21T09:30:00Z", "payload": "cut o',
    ],
)
def test_a_time_is_found(content):
    assert find_record_time(content.encode(), NOW) == TIME


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\x00",
        b'{"timestamp": "yesterday"}',
        b'{"timestamp": "2026-11-21T09:30:00"}',
        b'{"timestamp": "2026-11-21T13:00:00Z"}',
        b'{"timestamp": "\xff"}',
        b'{"ts": 9999999999999999999}',
        b'{"ts": 100000000}',
        b'{"other": "2026-11-21T09:30:00Z"}',
    ],
)
def test_what_is_no_time_or_in_the_future_is_not_taken(content):
    assert find_record_time(content, NOW) is None
