"""Cursor over the incidents that were modified in a window.

Azure does not document whether its links to the next page are offsets. If they are, an incident
that changes in the meantime and leaves the window moves another incident to a page that was already
read. Therefore, each page starts at the second in which the last incident on the previous page was
modified. The link is followed only if a whole page contains incidents from the same second.
Duplicates are recognized.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any, Self

from tocsin import Broken, Window
from tocsin_connectors.siem.microsoft.kql import format_second
from tocsin_connectors.siem.records import child, parse_utc, text

MODIFIED = "lastModifiedTimeUtc"


@dataclass(frozen=True, slots=True)
class SentinelCursor:
    """Request for the incidents modified from `since` on, or for a linked page."""

    since: str
    link: str | None = None
    """Path and query of a linked page."""

    @classmethod
    def first(cls, window: Window) -> Self:
        """Return the first cursor of a window."""
        return cls(format_second(window.start))

    def following(
        self, records: Sequence[Mapping[str, Any]], link: str | None
    ) -> SentinelCursor | None:
        """Return the next cursor, or None at the end."""
        if link is None:
            return None
        reached = [format_second(moment) for moment in _iterate_modified(records)]
        in_order = all(one <= other for one, other in pairwise(reached))
        if reached and in_order and reached[-1] > self.since:
            return SentinelCursor(reached[-1])
        return SentinelCursor(self.since, link)

    def encode(self) -> list[Any]:
        """Return the page token; the inverse of `decode`."""
        return [self.since, self.link]

    @classmethod
    def decode(cls, token: Any) -> Self:
        """Return the cursor of a page token. Raises `Broken` for an invalid one."""
        match token:
            case [str(since), (str() | None) as link]:
                return cls(since, link)
        raise Broken(f"the page token belongs to another version of Tocsin: {token!r:.60}")


def _iterate_modified(records: Sequence[Mapping[str, Any]]) -> Iterator[datetime]:
    """Yield when those were modified that say so."""
    for record in records:
        with suppress(ValueError):
            if value := text(child(dict(record), "properties"), MODIFIED):
                yield parse_utc(value)
