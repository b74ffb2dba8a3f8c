"""Markdown shortened to a tracker's limit."""

from __future__ import annotations

from collections.abc import Callable

_NOTICE = "… shortened: the rest is in Tocsin."
_KEPT = 2  # the link to the whole, and what names the event


def shorten_markdown(markdown: str, fits: Callable[[str], bool]) -> str:
    """Return the Markdown, with lines left out at the end of its text until it fits.

    Its last two paragraphs stay: the link to the whole, and the name of the event.
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
