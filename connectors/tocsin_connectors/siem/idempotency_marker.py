"""Idempotency markers: the last line of a comment, which identifies it in later reads."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any


def add_marker(text: str, key: str) -> str:
    """Append the marker of a key to a comment."""
    return f"{text}\n\n{_build_marker(key)}"


def has_marker(key: str, comments: Iterable[str]) -> bool:
    """Return whether one of the comments ends with the marker of a key."""
    return any(comment.rstrip().endswith(f"\n{_build_marker(key)}") for comment in comments)


def fence_text(text: str) -> str:
    """Return a text as a code block, in which Markdown has no effect.

    The fence is longer than any in the text (CommonMark section 4.5).
    """
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def _build_marker(key: str) -> str:
    return f"[tocsin {key}]"


def read_comments(records: Iterable[Mapping[str, Any]], member: str) -> Iterator[str]:
    """Yield the full texts at a member of records, including their markers."""
    yield from (text for record in records if isinstance(text := record.get(member), str))
