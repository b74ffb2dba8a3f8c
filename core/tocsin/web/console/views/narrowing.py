"""What a list is narrowed by, and where in it one is."""

from __future__ import annotations

from collections.abc import Mapping

from tocsin.web.console.periods import to_field, to_utc
from tocsin.web.console.reading import PageRequest

MOMENTS = ("since", "until")
"""The query's parameters that a period begins and ends by."""


def select_query(reading: PageRequest, *names: str) -> dict[str, str]:
    """Return those of the query's parameters that are given."""
    return {name: reading.query[name] for name in names if name in reading.query}


def select_period(reading: PageRequest) -> dict[str, str]:
    """Return those ends of the period that are given, in UTC."""
    return {name: to_utc(text) for name, text in select_query(reading, *MOMENTS).items()}


def format_period_fields(query: Mapping[str, str]) -> dict[str, str]:
    """Return both ends of a period as fields have them, empty where they are not given."""
    return {name: to_field(query.get(name, "")) for name in MOMENTS}
