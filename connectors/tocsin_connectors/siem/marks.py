"""The mark at the end of a comment, by which it is known again that it was written."""

from __future__ import annotations

import re
from collections.abc import Iterable


def marked(text: str, key: str) -> str:
    """Return a comment that ends with the mark of its key."""
    return f"{text}\n\n{_mark(key)}"


def is_written(key: str, comments: Iterable[str]) -> bool:
    """Return whether one of the comments ends with the mark of a key."""
    return any(comment.rstrip().endswith(f"\n{_mark(key)}") for comment in comments)


def fenced(text: str) -> str:
    """Return a text as a block of code, in which Markdown means nothing.

    The fence is longer than any that the text holds (CommonMark section 4.5).
    """
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def _mark(key: str) -> str:
    return f"[tocsin {key}]"
