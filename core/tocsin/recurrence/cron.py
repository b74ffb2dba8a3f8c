"""Cron expressions in the dialect of Debian's cron; the only user of the library cronsim.

Five fields: minute, hour, day of month, month, weekday, where 0 and 7 are Sunday. If both day
fields are given, matching either is enough. A job at fixed hours and minutes that the change to
daylight saving time would skip runs right after it, and one that the change back would repeat runs
once; a job with a star in the hour or the minute follows elapsed time. Where daylight saving time
is half an hour, as on Lord Howe Island, the library may skip the half hour that occurs twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import islice, pairwise
from types import MappingProxyType
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

MAX_LENGTH = 200
_FIELDS = ("minute", "hour", "day-of-month", "month", "day-of-week")
_EXPECTED = MappingProxyType(
    {
        "minute": "0 to 59",
        "hour": "0 to 23",
        "day-of-month": "1 to 31, or L for the last",
        "month": "1 to 12, or jan to dec",
        "day-of-week": "0 to 7, or sun to sat",
    }
)
NICKNAMES = MappingProxyType(
    {
        "@yearly": "0 0 1 1 *",
        "@annually": "0 0 1 1 *",
        "@monthly": "0 0 1 * *",
        "@weekly": "0 0 * * 0",
        "@daily": "0 0 * * *",
        "@midnight": "0 0 * * *",
        "@hourly": "0 * * * *",
    }
)
_REFERENCE_TIME = datetime(2026, 1, 1, tzinfo=UTC)
_SAMPLE_SIZE = 1_000
_MAX_DAY = 31


class CronError(ValueError):
    """A cron expression is invalid."""


@lru_cache(maxsize=10_000)
def parse_cron(text: str) -> str:
    """Return the expression in five fields; the CronError names the invalid field."""
    plain = " ".join(text.split())
    expression = NICKNAMES.get(plain.lower(), plain)
    if expression.startswith("@"):
        raise CronError(f"unknown nickname {plain!r}; use one of: {', '.join(NICKNAMES)}")
    fields = expression.split(" ")
    if len(expression) > MAX_LENGTH or len(fields) != len(_FIELDS):
        raise CronError(f"use five fields, such as '0 2 * * *': {', '.join(_FIELDS)}")
    try:
        fires = CronSim(expression, _REFERENCE_TIME)
    except CronSimError as error:
        raise CronError(_describe_error(str(error), fields)) from None
    if next(fires, None) is None:
        raise CronError("the expression never fires")
    return expression


def _describe_error(error: str, fields: list[str]) -> str:
    name = error.removeprefix("Bad ")
    if name not in _EXPECTED:
        return "not a cron expression; use one such as '0 2 * * *'"
    found = fields[_FIELDS.index(name)]
    if name == "day-of-month" and found.isdigit() and 1 <= int(found) <= _MAX_DAY:
        return f"the expression never fires: no month in {fields[3]!r} has {found} days"
    return (
        f"the {name} field {found!r} is invalid: use {_EXPECTED[name]}, a list, a range or a step"
    )


def iter_cron_times(expression: str, zone: ZoneInfo, after: datetime) -> Iterator[datetime]:
    """Yield the times after `after` at which a parsed expression fires in a zone, in UTC."""
    local = after.astimezone(UTC if zone.key == "UTC" else zone)
    for fire in CronSim(expression, local):
        moment = fire.astimezone(UTC)
        if moment > after:  # within an hour that occurs twice, the library starts with the first
            yield moment


@lru_cache(maxsize=10_000)
def find_shortest_interval(expression: str, zone: str) -> timedelta:
    """Return the shortest interval between fire times, from a sample of them."""
    some = islice(iter_cron_times(expression, ZoneInfo(zone), _REFERENCE_TIME), _SAMPLE_SIZE)
    intervals = (later - earlier for earlier, later in pairwise(some))
    return min(intervals, default=timedelta(days=365))
