"""Filters in the Falcon Query Language.

https://www.falconpy.io/Usage/Falcon-Query-Language.html
"""

from __future__ import annotations

from datetime import UTC, datetime

UPDATED = "updated_timestamp"
UPDATE_ORDER = f"{UPDATED}|asc"


def quote_value(value: str) -> str:
    """Return a text as a value of a filter, whatever it holds."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def build_update_filter(since: str, until: datetime) -> str:
    """Return the filter for what was updated from one time on, and before another."""
    return f"{UPDATED}:>={quote_value(since)}+{UPDATED}:<{quote_value(format_time(until))}"


def format_time(moment: datetime) -> str:
    """Return a time as exactly as filters and orders look at it, cut and not rounded.

    Alerts have their times to the nanosecond, but the index behind them does not.
    """
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"
