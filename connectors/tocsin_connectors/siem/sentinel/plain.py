"""Comments of Sentinel, which its portals show as Markdown with HTML in it.

https://learn.microsoft.com/azure/sentinel/incident-navigate-triage
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from uuid import NAMESPACE_URL, uuid5

MAX_COMMENT_LENGTH = 30_000
_MARKUP = frozenset('!"#$&*:;<=>?@[\\]^_`{|}~')
_AT_THE_BEGINNING = re.compile(r"[ \t]*(?:[+\-=]|\d{1,9}[.)])|[ \t]")
"""What makes a list, a heading or a block of code of a line; only its last character does."""


def derive_comment_name(key: str) -> str:
    """Return the name of a comment, the same for the same key."""
    return str(uuid5(NAMESPACE_URL, f"tocsin:{key}"))


def escape_markup(text: str) -> str:
    """Return a comment that reads as the text does, cut to what one can hold.

    What could be markup is written as character references: in CommonMark (section 6.4) as in HTML
    they are never taken for markup, nor for a part of a link.
    """
    kept, room = [], MAX_COMMENT_LENGTH
    for part in _escape_parts(text):
        room -= len(part.encode("utf-16-le", "surrogatepass")) // 2  # as .NET counts it
        if room < 0:
            break
        kept.append(part)
    return "".join(kept)


def _escape_parts(text: str) -> Iterator[str]:
    for line in text.splitlines(keepends=True):
        words = line.rstrip("\r\n")
        marked = len(match[0]) if (match := _AT_THE_BEGINNING.match(words)) else 0
        for place, character in enumerate(words):
            is_markup = character in _MARKUP or place == marked - 1
            yield f"&#{ord(character)};" if is_markup else character
        if words != line:
            yield "<br>\n"
