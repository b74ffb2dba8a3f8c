"""Queries in TicketSQL: https://docs.bestpractical.com/rt/latest/query_builder.html."""

from __future__ import annotations

FIELD_NAME = r"^[^{}'\"\\]+$"
"""The names of custom fields that can stand in a query."""


def tickets_query(mark: str, field: str | None) -> str:
    """Return the query for the tickets with a mark in a custom field, or in their subject."""
    return (
        f"'CF.{{{field}}}' = {quote_value(mark)}" if field else f"Subject LIKE {quote_value(mark)}"
    )


def quote_value(text: str) -> str:
    """Return a text as it stands in TicketSQL: a backslash takes away what follows its meaning."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
