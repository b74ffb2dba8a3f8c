"""Time ranges in a query: `last 24 hours`, `since yesterday`, `between ... and ...`."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pydantic import TypeAdapter

from tocsin import Duration, Window

_DAY = timedelta(days=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS = {
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": _DAY,
    "w": timedelta(weeks=1),
    "mo": timedelta(days=30),
}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")

_AMOUNT = (
    r"(?P<n>[0-9]{1,5})?\s*"
    r"(?P<unit>s|m|h|d|w|mo|sec|min|hr|second|minute|hour|day|week|month)s?\b"
)
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b"
)
_ISO_DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK = r"[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?\s?(?:z|utc|[+-][0-9]{2}:?[0-9]{2})?"
_MOMENT = (
    rf"(?:{_ISO_DAY}(?:[t ]\s?{_CLOCK})?"
    rf"|[0-9]{{1,2}}(?:st|nd|rd|th)?\s(?:of\s)?{_MONTH}(?:,?\s[0-9]{{4}})?"
    rf"|{_MONTH}\s[0-9]{{1,2}}(?:st|nd|rd|th)?(?:,?\s[0-9]{{4}})?"
    r"|today|yesterday|now|(?:last\s)?(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)day"
    r"|[0-9]{1,5}\s*(?:s|m|h|d|w|mo|sec|min|hr|second|minute|hour|day|week|month)s?\sago)"
)
_ISO_DURATION = re.compile(r"\bP(?:[0-9]+W|(?=[0-9T])(?:[0-9]+D)?(?:T[0-9HMS]+)?)\b", re.IGNORECASE)
_DURATION: TypeAdapter[timedelta] = TypeAdapter(Duration)


@dataclass(frozen=True, slots=True)
class TimeRange:
    """A time range in a text; `window` is None if it is invalid."""

    window: Window | None
    text: str


def find_range(text: str, now: datetime) -> TimeRange | None:
    """Return the first time range of the most exact pattern in a text; None if there is none."""
    for pattern, read in _PATTERNS:
        if (match := pattern.search(text)) and match[0].strip().lower() != "now":
            window = None
            with suppress(ValueError, OverflowError):  # such as 31 February
                window = _limit_to_past(*read(match, now), now)
            return TimeRange(window, match[0])
    return None


def _limit_to_past(start: datetime, end: datetime, now: datetime) -> Window | None:
    end = min(end, now)
    return Window(start, end) if _EPOCH <= start < end else None


def _read_between(match: re.Match[str], now: datetime) -> tuple[datetime, datetime]:
    (start, _), (_, end) = _parse_moment(match["start"], now), _parse_moment(match["end"], now)
    return start, end


def _read_since(match: re.Match[str], now: datetime) -> tuple[datetime, datetime]:
    return _parse_moment(match["start"], now)[0], now


def _read_before(match: re.Match[str], now: datetime) -> tuple[datetime, datetime]:
    begin, end = _parse_moment(match["end"], now)
    end = begin if match[0].lower().startswith("before") else end
    return end - timedelta(weeks=1), end


def _read_on(match: re.Match[str], now: datetime) -> tuple[datetime, datetime]:
    start, end = _parse_moment(match["day"], now)
    return start, end if end > start else start + timedelta(hours=1)


def _read_last(match: re.Match[str], now: datetime) -> tuple[datetime, datetime]:
    return now - _parse_amount(match["n"], match["unit"]), now


def _read_duration(match: re.Match[str], now: datetime) -> tuple[datetime, datetime]:
    return now - _DURATION.validate_python(match[0].upper()), now


def _parse_amount(number: str | None, unit: str) -> timedelta:
    unit = unit.lower()
    key = "mo" if unit.startswith("mo") else unit[0]
    return int(number or 1) * _UNITS[key]


def _parse_moment(text: str, now: datetime) -> tuple[datetime, datetime]:
    """Return the start and end of a moment; for a time of day, both are the same."""
    text = " ".join(text.lower().split())
    today = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if text == "now":
        return now, now
    if text in ("today", "yesterday"):
        day = today - (_DAY if text == "yesterday" else timedelta(0))
        return day, day + _DAY
    if match := re.fullmatch(_AMOUNT + r"\sago", text):
        ago = now - _parse_amount(match["n"], match["unit"])
        return ago, ago
    if text.endswith("day"):
        weekday = _WEEKDAYS.index(text.removeprefix("last ")[:3])
        day = today - ((today.weekday() - weekday) % 7 or 7) * _DAY
        return day, day + _DAY
    return _parse_date(text, now)


def _parse_date(text: str, now: datetime) -> tuple[datetime, datetime]:
    if re.match(_ISO_DAY, text):
        moment = _parse_iso(text)
        return moment, moment + _DAY if len(text) == len("2026-11-01") else moment
    day = _parse_named_day(text, now)
    return day, day + _DAY


def _parse_iso(text: str) -> datetime:
    day, rest = text[:10], text[10:].strip(" t").replace("utc", "z").replace(" ", "")
    if rest[1:2] == ":":  # 9:30
        rest = f"0{rest}"
    moment = datetime.fromisoformat(f"{day}T{rest or '00:00'}".upper())
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)


def _parse_named_day(text: str, now: datetime) -> datetime:
    month = next(1 + _MONTHS.index(word[:3]) for word in re.findall("[a-z]{3,}", text))
    day, *year = (int(number) for number in re.findall("[0-9]+", text))
    if year:
        return datetime(year[0], month, day, tzinfo=UTC)
    this_year = datetime(now.year, month, day, tzinfo=UTC)
    return this_year if this_year <= now else this_year.replace(year=now.year - 1)


_Reader = Callable[[re.Match[str], datetime], tuple[datetime, datetime]]


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE)


_PATTERNS: tuple[tuple[re.Pattern[str], _Reader], ...] = (
    (
        _pattern(
            rf"\b(?:between|from)\s(?P<start>{_MOMENT})\s(?:and|to|until|till)\s(?P<end>{_MOMENT})"
        ),
        _read_between,
    ),
    (
        _pattern(
            rf"(?P<start>{_ISO_DAY}(?:T{_CLOCK})?)\s?(?:/|\.\.|to)\s?"
            rf"(?P<end>{_ISO_DAY}(?:T{_CLOCK})?)"
        ),
        _read_between,
    ),
    (_pattern(rf"\b(?:since|after|starting)\s(?P<start>{_MOMENT})"), _read_since),
    (_pattern(rf"\b(?:last|past|previous|recent)\s{_AMOUNT}"), _read_last),
    (_ISO_DURATION, _read_duration),
    (_pattern(rf"\b(?:before|until|up to)\s(?P<end>{_MOMENT})"), _read_before),
    (_pattern(rf"\b(?:on\s)?(?P<day>{_MOMENT})"), _read_on),
)
