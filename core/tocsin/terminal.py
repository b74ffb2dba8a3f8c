"""Text that cannot control or mislead a terminal."""

from __future__ import annotations

import re

_HARMFUL = re.compile(
    "["
    "\x00-\x08\x0b-\x1f"  # C0 controls, but for tab and line feed
    "\x7f-\x9f"  # delete and C1 controls
    "\u061c\u200e\u200f\u202a-\u202e"  # bidirectional controls (UAX #9), with U+2066 to U+2069
    "\u2028\u2029"  # line and paragraph separators
    "\ud800-\udfff"  # surrogates, which no terminal can show
    # Default_Ignorable_Code_Point, but for joiners and variations of emoji, which scripts need
    "\xad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u2060-\u206f\u3164\ufeff\uffa0"
    "\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    "]"
)


def neutralize(text: str) -> str:
    r"""Return text whose harmful characters are written as `\uXXXX`.

    In a JSON document these characters occur inside of strings alone, where that is how JSON writes
    them, so the document keeps its meaning.
    """
    return text if text.isascii() and text.isprintable() else _HARMFUL.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))
