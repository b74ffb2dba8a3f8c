"""Comments of Sentinel incidents: 30,000 characters each, 100 per incident.

https://learn.microsoft.com/azure/sentinel/incident-navigate-triage
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from uuid import UUID, uuid5

from tocsin import Observable

_MAX_LENGTH = 30_000
_MARKER = re.compile(r"#([0-9a-f]{12})\b")
_HEADING = "**Tocsin: entities**\n\n"
_ESCAPES = str.maketrans({"`": "'", "<": "&lt;", ">": "&gt;", "\n": " ", "\r": " "})


def derive_comment_name(incident: str, text: str) -> str:
    """Derive a comment's name from the incident and the text."""
    return str(uuid5(UUID(incident), text))


def build_note(title: str, text: str) -> str:
    """Return a note as a comment, shortened to the limit without losing the last line."""
    body, _, mark = f"**{title}**\n\n{text}".rpartition("\n\n")
    return f"{_cut(body, _MAX_LENGTH - len(mark) - 2)}\n\n{mark}"


def split_listing(
    observables: Sequence[Observable], comments: Iterable[str]
) -> Iterator[list[str]]:
    """Yield the lines of each comment that lists new observables."""
    known = set(_MARKER.findall("\n".join(comments)))
    lines, room = list[str](), 0
    for observable in observables:
        if (mark := _build_marker(observable)) in known:
            continue
        line = _build_line(observable, mark)
        if lines and _utf16_length(line) > room:
            yield lines
            lines = []
        if not lines:
            room = _MAX_LENGTH - len(_HEADING)
        lines.append(line)
        room -= _utf16_length(line)
    if lines:
        yield lines


def build_listing(lines: Iterable[str]) -> str:
    """Return the comment of these lines."""
    return _HEADING + "".join(lines)


def _build_line(observable: Observable, mark: str) -> str:
    """Return a line that shows an entity without interpreting it.

    Comments are Markdown and basic HTML, and portals may rewrite them, so a marker identifies the
    entity.
    """
    value = observable.value.translate(_ESCAPES)
    return f"- {observable.called or observable.kind.value} `{value}` #{mark}\n"


def _build_marker(observable: Observable) -> str:
    name = f"{observable.kind.value}\0{observable.value}".encode(errors="replace")
    return sha256(name).hexdigest()[:12]


def _utf16_length(text: str) -> int:
    """Return the length in UTF-16 code units, as .NET counts."""
    return len(text.encode("utf-16-le", "replace")) // 2


def _cut(text: str, size: int) -> str:
    return text.encode("utf-16-le", "replace")[: 2 * size].decode("utf-16-le", "ignore")
