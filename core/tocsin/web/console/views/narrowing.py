"""What a list is narrowed by, and where in it one is."""

from __future__ import annotations

from tocsin.web.console.reading import Reading


def chosen_from(reading: Reading, *names: str) -> dict[str, str]:
    """Return those of the query's parameters that are given."""
    return {name: reading.query[name] for name in names if name in reading.query}
