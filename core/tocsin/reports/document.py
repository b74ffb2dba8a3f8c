"""Reports as JSON, the form in which they are stored and delivered."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from functools import cache
from typing import Any

import orjson
from pydantic import TypeAdapter

from tocsin.clock import isoformat
from tocsin.model import Report

_MILLISECOND = 1_000


@cache
def _adapter() -> TypeAdapter[Report]:
    return TypeAdapter(Report)


def to_json(report: Report) -> dict[str, Any]:
    """Return the report as JSON; docs/reference/report.md describes its members."""
    written = orjson.dumps(report, default=_time, option=orjson.OPT_PASSTHROUGH_DATETIME)
    document: dict[str, Any] = orjson.loads(written)
    return document


def from_json(document: Any) -> Report:
    """Return the report that `to_json` wrote. Raises ValueError for anything else.

    Members that an older version did not write have their defaults; unknown members are ignored.
    """
    report = _adapter().validate_json(orjson.dumps(document), strict=True)
    if any(moment.tzinfo is None for moment in _times(report)):
        raise ValueError("times in a report require a time zone")
    return report


def _time(value: Any) -> str:
    if not isinstance(value, datetime):
        raise TypeError(f"a report cannot contain {type(value).__name__}")
    if value.microsecond % _MILLISECOND:
        return isoformat(value)[:-1] + f"{value.microsecond % _MILLISECOND:03}Z"
    return isoformat(value)


def _times(report: Report) -> Iterator[datetime]:
    yield from (report.window.start, report.window.end)
    yield from (moment.at for moment in report.timeline)
    yield from (relation.at for relation in report.relations if relation.at)
    for each in report.entities:
        yield from (moment for moment in (each.first_seen, each.last_seen) if moment)
