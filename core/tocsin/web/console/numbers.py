"""Whole numbers in fields."""

from __future__ import annotations

_MOST_DIGITS = 9


def to_number(text: str) -> int | str:
    """Return the number that stands in a field; what is none as it is, to be judged elsewhere."""
    is_number = text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS
    return int(text) if is_number else text
