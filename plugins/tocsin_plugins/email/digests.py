"""Several events in one mail: what is told of each, one after the other, below a list of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from markupsafe import escape

from tocsin import Misconfigured
from tocsin_plugins.email.message import LONGEST_SUBJECT
from tocsin_plugins.email.words import to_one_line

BEGIN, END = "<!-- event -->", "<!-- /event -->"
"""What a template of HTML puts around what it tells of its event."""
MAX_DIGEST_SIZE = 96 * 1024
"""How much text and HTML a digest holds; some mail readers cut what is longer than 102 KB."""
_RULE = "\n\n" + "-" * 60 + "\n\n"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class DigestEntry:
    """What is told of an event, or of several."""

    subject: str
    text: str
    html: str

    @property
    def size(self) -> int:
        """How many bytes that are."""
        return len(self.text.encode()) + len(self.html.encode())


def join_entries(entries: Sequence[DigestEntry]) -> DigestEntry:
    """Return all of it as one; raises `Misconfigured` where a template does not show how."""
    count = f"{len(entries)} events"
    first, rest = entries[0].subject, len(entries) - 1
    return DigestEntry(
        subject=to_one_line(f"{count}: {first}, and {rest} more", LONGEST_SUBJECT),
        text=_join_text(count, entries),
        html=_join_html(count, entries),
    )


def _join_text(count: str, entries: Sequence[DigestEntry]) -> str:
    contents = "\n".join(f"{place}. {it.subject}" for place, it in enumerate(entries, 1))
    told = (f"{place}. {it.text.strip()}" for place, it in enumerate(entries, 1))
    return _RULE.join([f"{count}\n\n{contents}", *told]) + "\n"


def _join_html(count: str, entries: Sequence[DigestEntry]) -> str:
    before, _, after = _split_html(entries[0].html)
    contents = "".join(f"<li>{escape(it.subject)}</li>" for it in entries)
    told = (_split_html(it.html)[1] for it in entries)
    listed = f"<p><strong>{count}</strong></p><ol>{contents}</ol>"
    return f'{before}<div style="padding:8px 28px;">{listed}</div>{"".join(told)}{after}'


def _split_html(html: str) -> tuple[str, str, str]:
    """Return what stands before an event's part, that part, and what stands behind it."""
    before, begin, rest = html.partition(BEGIN)
    part, end, after = rest.rpartition(END)
    if not begin or not end:
        raise Misconfigured(f"for a digest, the template of HTML has to have {BEGIN} and {END}")
    return before, part, after


def split_into_mails(
    items: Sequence[tuple[T, DigestEntry]],
) -> Iterator[list[tuple[T, DigestEntry]]]:
    """Yield them in their order, as many at a time as one mail holds."""
    chunk: list[tuple[T, DigestEntry]] = []
    size = 0
    for item in items:
        if chunk and size + item[1].size > MAX_DIGEST_SIZE:
            yield chunk
            chunk, size = [], 0
        chunk.append(item)
        size += item[1].size
    if chunk:
        yield chunk
