"""What a list is narrowed by, and where in it one is."""

from __future__ import annotations

from collections.abc import Mapping

from tocsin.web.console.periods import as_field, as_utc
from tocsin.web.console.reading import Reading

MOMENTS = ("since", "until")
"""The query's parameters that a period begins and ends by."""


def chosen_from(reading: Reading, *names: str) -> dict[str, str]:
    """Return those of the query's parameters that are given."""
    return {name: reading.query[name] for name in names if name in reading.query}


def period_from(reading: Reading) -> dict[str, str]:
    """Return those ends of the period that are given, in UTC."""
    return {name: as_utc(text) for name, text in chosen_from(reading, *MOMENTS).items()}


def period_fields(query: Mapping[str, str]) -> dict[str, str]:
    """Return both ends of a period as fields have them, empty where they are not given."""
    return {name: as_field(query.get(name, "")) for name in MOMENTS}
