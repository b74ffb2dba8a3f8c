"""Times and durations in the notation of Go."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from tocsin_connectors.siem.records import parse_utc

GO_ZERO = datetime(1, 1, 1, tzinfo=UTC)
"""Go's zero time."""
# https://pkg.go.dev/time#Time.String
_GO_TIME = re.compile(r"([\d-]+) ([\d:.]+) ([+-]\d{4}) \S+(?: m=\S+)?")
# https://pkg.go.dev/time#ParseDuration
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(h|ms|m|s|us|\u00b5s|ns)")
_UNIT_SECONDS = {"h": 3600, "m": 60, "s": 1, "ms": 1e-3, "us": 1e-6, "\u00b5s": 1e-6, "ns": 1e-9}


def parse_time(text: str) -> datetime:
    """Parse `2026-11-20 09:19:51.5 +0000 UTC` or RFC 3339, and return the time in UTC.

    Digits beyond microseconds are dropped. Raises ValueError for anything else.
    """
    return parse_utc(_GO_TIME.sub(r"\1T\2\3", text))


def format_duration(length: timedelta) -> str:
    """Format a duration for Go's `time.ParseDuration`: `86400.250000s`."""
    return f"{length // timedelta(microseconds=1) / 1e6:.6f}s"


def parse_duration(text: str) -> timedelta:
    """Parse `3h59m1.5s` or `-500ms`. Raises ValueError for anything else."""
    parts = _DURATION_PART.findall(text)
    if not parts or "".join(map("".join, parts)) != text.removeprefix("-"):
        raise ValueError(f"{text!r:.60} is not a duration")
    seconds = sum(float(count) * _UNIT_SECONDS[unit] for count, unit in parts)
    try:
        return timedelta(seconds=-seconds if text.startswith("-") else seconds)
    except OverflowError as error:
        raise ValueError(f"{text!r:.60} is out of range") from error


def format_short(length: timedelta) -> str:
    """Format a duration for people: `4h`, `1h30m`, `45s`."""
    minutes, seconds = divmod(round(length.total_seconds()), 60)
    hours, minutes = divmod(minutes, 60)
    parts = ((hours, "h"), (minutes, "m"), (seconds, "s"))
    return "".join(f"{count}{unit}" for count, unit in parts if count) or "0s"
