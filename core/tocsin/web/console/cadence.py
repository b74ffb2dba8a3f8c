"""Descriptions of schedules in words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tocsin import durations
from tocsin.recurrence import ScheduleDefinition

_DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_SHORT = {day[:3].lower(): day for day in _DAYS}
_NUMBER = re.compile(r"[0-9]{1,2}")
_STEP = re.compile(r"\*/([0-9]{1,2})")
_RANGE = re.compile(r"([0-9]{1,2})-([0-9]{1,2})")
_MINUTES, _HOURS = 60, 24


def describe_cadence(schedule: Mapping[str, Any]) -> str | None:
    """Return the timing of a schedule in words, None for a complex cron expression."""
    if schedule["interval"] is not None:
        return f"every {format_duration(schedule['interval'])}"
    timing = describe_cron(schedule["cron"])
    return timing and f"{timing} ({schedule['timezone']})"


def format_duration(duration: str | None) -> str:
    """Return an ISO 8601 duration in the short form `15m`, empty for none."""
    return (
        ""
        if duration is None
        else durations.format_duration(durations.parse_iso_duration(duration))
    )


def describe_cron(cron: str) -> str | None:
    """Return the meaning of a valid cron expression, None if it is complex."""
    fields = ScheduleDefinition.model_construct(query="", cron=cron).cron_fields.lower()
    minute, hour, day, month, weekday = fields.split()
    times, days = _describe_times(minute, hour), _describe_days(day, weekday)
    if times is None or days is None or month != "*":
        return None
    return times if days == "every day" and times.startswith("every") else f"{days} {times}"


def _describe_times(minute: str, hour: str) -> str | None:
    """Return the times within a day, None if they are complex."""
    often = _describe_step(minute, _MINUTES, "minute")
    hours = _RANGE.fullmatch(hour)
    if often is not None and hour == "*":
        return often
    if often is not None and hours is not None:
        return f"{often} from {int(hours[1]):02}:00 to {int(hours[2]):02}:59"
    return _describe_hours(int(minute), hour) if _NUMBER.fullmatch(minute) else None


def _describe_hours(minute: int, hour: str) -> str | None:
    if (often := _describe_step(hour, _HOURS, "hour")) is not None:
        return f"{often} at minute {minute}" if minute else often
    hours = hour.split(",")
    if not all(map(_NUMBER.fullmatch, hours)):
        return None
    return "at " + _join([f"{int(hour):02}:{minute:02}" for hour in hours])


def _describe_step(field: str, of: int, unit: str) -> str | None:
    """Return the frequency of a step, None if it does not divide the unit evenly."""
    if field == "*":
        return f"every {unit}"
    step = _STEP.fullmatch(field)
    if step is None or not 1 < int(step[1]) < of or of % int(step[1]):
        return None
    return f"every {step[1]} {unit}s"


def _describe_days(day: str, weekday: str) -> str | None:
    """Return the days, None if they are complex."""
    match day, weekday:
        case "*", "*":
            return "every day"
        case "l", "*":
            return "on the last day of each month"
        case "*", _:
            return _describe_weekdays(weekday)
        case _, "*" if all(map(_NUMBER.fullmatch, day.split(","))):
            days = [str(int(part)) for part in day.split(",")]
            return f"on day{'s' if len(days) > 1 else ''} {_join(days)} of each month"
    return None


def _describe_weekdays(field: str) -> str | None:
    parts = [[_weekday(day) for day in part.split("-")] for part in field.split(",")]
    if any(None in part or len(part) > 2 for part in parts):  # noqa: PLR2004 - from and to
        return None
    days = _join([" to ".join(filter(None, part)) for part in parts])
    return days if len(parts[0]) > 1 else f"on {days}"


def _weekday(word: str) -> str | None:
    is_number = _NUMBER.fullmatch(word) and int(word) < len(_DAYS)
    return _DAYS[int(word)] if is_number else _SHORT.get(word)


def _join(words: list[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last
