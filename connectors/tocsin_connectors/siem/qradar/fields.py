"""Taking values out of what QRadar tells; times are milliseconds since 1970."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from tocsin_connectors.siem.records import number, text

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_PLAUSIBLE = range(10**11, 10**13)
"""From 1973 to 2286: what is less was seconds, what is more microseconds."""


def parse_time(record: dict[str, Any], name: str) -> datetime | None:
    """Return the time at `name`, None where there is none; ValueError where it cannot be one."""
    told = number(record, name)
    if told is None or told <= 0:
        return None
    if told not in _PLAUSIBLE:
        raise ValueError(f"{name} is no time in milliseconds: {told}")
    return _EPOCH + told * _MILLISECOND


def to_milliseconds(moment: datetime) -> int:
    """Return a time as QRadar has it, rounded up: what is at it or later is what is meant."""
    return -((_EPOCH - moment) // _MILLISECOND)


def text_or_number(record: dict[str, Any], name: str) -> str | None:
    """Return the text or the whole number at `name` as text, None where there is neither."""
    found = number(record, name)
    return text(record, name) if found is None else str(found)
