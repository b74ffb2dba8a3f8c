"""Durations as text, such as `5m` or `PT5M`."""

from __future__ import annotations

import re
from datetime import timedelta

_SHORT_DURATION = re.compile(r"([0-9]{1,9})(ms|s|m|h|d|w)")
_ISO_DURATION = re.compile(
    r"P(?:(?P<weeks>[0-9]{1,6})W"
    r"|(?=[0-9T])(?:(?P<days>[0-9]{1,6})D)?"
    r"(?:T(?=[0-9])(?:(?P<hours>[0-9]{1,6})H)?(?:(?P<minutes>[0-9]{1,6})M)?(?:(?P<seconds>[0-9]{1,9})S)?)?)"
)
_UNITS = {
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}


def parse_duration(text: str) -> timedelta:
    """Return the duration of a number with a unit, such as `30s`, or of ISO 8601.

    Raises ValueError for anything else, and OverflowError for a duration that is too long.
    """
    if match := _SHORT_DURATION.fullmatch(text):
        return int(match[1]) * _UNITS[match[2]]
    return parse_iso_duration(text)


def parse_iso_duration(text: str) -> timedelta:
    """Return the duration of `P[nW]` or `P[nD][T[nH][nM][nS]]`; ValueError for anything else.

    Years and months are refused, because their length depends on the start date.
    """
    match = _ISO_DURATION.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a duration such as PT15M, P1D or P2W")
    duration = timedelta(**{unit: int(n) for unit, n in match.groupdict().items() if n})
    if duration <= timedelta(0):
        raise ValueError(f"{text!r} is zero; use a duration such as PT15M")
    return duration


def format_iso_duration(duration: timedelta) -> str:
    """Return whole seconds in the format of `parse_iso_duration`: `P1DT2H`, `PT15M`, `PT10S`."""
    seconds = duration // timedelta(seconds=1)
    parts = ((seconds // 3600 % 24, "H"), (seconds // 60 % 60, "M"), (seconds % 60, "S"))
    time = "".join(f"{count}{unit}" for count, unit in parts if count)
    date = f"{seconds // 86_400}D" if seconds >= 86_400 else ""  # noqa: PLR2004 - a day
    return f"P{date}{'T' + time if time or not date else ''}"


def format_duration(duration: timedelta) -> str:
    """Return a duration in the largest unit that divides it: `5m`."""
    for unit, length in reversed(_UNITS.items()):
        if unit != "w" and duration and not duration % length:
            return f"{duration // length}{unit}"
    return "0s"
