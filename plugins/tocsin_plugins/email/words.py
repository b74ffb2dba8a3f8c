"""Text of others, made fit for where it goes in a mail."""

from __future__ import annotations

import re
from unicodedata import category

_REORDERING = re.compile("[\u202a-\u202e\u2066-\u2069]")  # the explicit controls of Unicode's UAX 9
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_LINE_ENDS = re.compile("\r\n|[\r\x0b\x0c\x85\u2028\u2029]")
_SEPARATE = ("Cc", "Cs", "Zl", "Zp", "Zs")


def to_one_line(text: str, longest: int) -> str:
    """Return the text as one line of so many characters at most, with nothing that hides or moves.

    What is cut ends with `…`. Nothing in it can begin another header.
    """
    begin = _REORDERING.sub("", text[: 4 * longest])  # a bound on the work, whatever comes
    spaced = "".join(" " if category(it) in _SEPARATE else it for it in begin)
    line = " ".join(spaced.split())
    return line if len(line) <= longest else line[: longest - 1].rstrip() + "…"


def clean_lines(text: str) -> str:
    """Return the text without what hides or moves; its lines end with a line feed."""
    return _CONTROLS.sub("", _REORDERING.sub("", _LINE_ENDS.sub("\n", text)))
