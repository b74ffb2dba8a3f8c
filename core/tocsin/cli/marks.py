"""Marks and colors of states on a terminal."""

from __future__ import annotations

import os
from collections.abc import Mapping
from enum import Enum
from typing import TextIO


class Mark(Enum):
    """Mark of a good, doubtful or bad state, readable without its color."""

    GOOD = "✓"
    WARNING = "!"
    BAD = "✗"


_COLORS = {Mark.GOOD: "32", Mark.WARNING: "33", Mark.BAD: "31"}
_WORDS: Mapping[Mark, frozenset[str]] = {
    Mark.GOOD: frozenset(
        {"active", "benign", "completed", "delivered", "healthy", "ok", "pushed", "read"}
    ),
    Mark.WARNING: frozenset(
        {
            *("absent", "degraded", "disabled", "expired", "later", "missed", "not delivered"),
            *("on_hold", "paused", "refused", "skipped", "suspicious", "unavailable", "warning"),
        }
    ),
    Mark.BAD: frozenset(
        {
            *("broken", "credentials-refused", "dead", "failed", "failing", "failure", "lost"),
            *("malicious", "misconfigured", "problem", "UNACCOUNTED"),
        }
    ),
}
_MARKS = {word: mark for mark, words in _WORDS.items() for word in words}
_SEVERITIES = {"Critical": Mark.BAD, "High": Mark.BAD, "Medium": Mark.WARNING}
_MARKED = {"state", "status", "outcome", "last_status", "verdict", "part"}
"""Columns whose words have marks."""


def find_mark(column: str, word: str) -> Mark | None:
    """Return the mark of a word in a column; None if the word has no mark."""
    return _MARKS.get(word) if column in _MARKED else None


def find_color(column: str, word: str) -> Mark | None:
    """Return the mark whose color a word has; severities have only colors."""
    return _SEVERITIES.get(word) if column == "severity" else find_mark(column, word)


def has_colors(file: TextIO) -> bool:
    """Return whether text for a file may have colors (https://no-color.org)."""
    return file.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def colorize(text: str, mark: Mark | None) -> str:
    """Return text in the color of a mark."""
    return text if mark is None else f"\x1b[{_COLORS[mark]}m{text}\x1b[0m"


def embolden(text: str) -> str:
    """Return text in bold."""
    return f"\x1b[1m{text}\x1b[0m"
