"""Limits that trackers set for texts: forbidden characters and maximum lengths."""

from __future__ import annotations

import re
from collections.abc import Callable

from tocsin import Json

# PostgreSQL and XML refuse control characters; Atlassian's renderer uses U+FFFC internally
_NOT_STORED = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufffc\ufffe\uffff]",
)
_REPLACEMENT = "\ufffd"
_NOTICE = "… shortened; see Tocsin for the rest."
_KEPT = 2  # the link to Tocsin, and the event's name


def replace_unprintable(value: Json) -> Json:
    """Return the value with U+FFFD in place of characters that cannot be stored."""
    match value:
        case str():
            return _NOT_STORED.sub(_REPLACEMENT, value)
        case list():
            return [replace_unprintable(item) for item in value]
        case dict():
            return {name: replace_unprintable(member) for name, member in value.items()}
    return value


def shorten_markdown(markdown: str, fits: Callable[[str], bool]) -> str:
    """Return the Markdown without as many of its last lines as necessary to fit the limit.

    The last two paragraphs always stay: the link to Tocsin and the name of the event.
    """
    *text, link, name = ("", *markdown.rsplit("\n\n", _KEPT))
    if fits(markdown) or not text[-1]:
        return markdown
    lines = text[-1].split("\n")
    fewest, most = 0, len(lines)
    while fewest < most:
        middle = (fewest + most + 1) // 2
        if fits(_join_shortened(lines[:middle], link, name)):
            fewest = middle
        else:
            most = middle - 1
    return _join_shortened(lines[:fewest], link, name)


def _join_shortened(lines: list[str], link: str, name: str) -> str:
    return "\n\n".join(["\n".join(lines).rstrip(), _NOTICE, link.strip(), name.strip()]).lstrip()
