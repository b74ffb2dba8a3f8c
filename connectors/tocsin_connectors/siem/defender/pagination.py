"""Cursor over the incidents, or the alerts, that were updated in a window.

Graph skips at most 500 incidents
(https://learn.microsoft.com/graph/api/resources/security-error-codes), and offsets shift when
incidents change that were already read. Therefore, each page starts at the time at which the last
incident on the previous page was updated. An offset is used only for incidents with the same update
time. Duplicates are recognized.
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
from tocsin_connectors.siem.records import parse_utc, text

UPDATED = "lastUpdateDateTime"
MAX_SKIP = 500
DefenderRecord = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class DefenderCursor:
    """Request for the incidents updated from `since` on, after the first `skip` of them."""

    since: str
    """In Graph's format and precision."""
    skip: int = 0
    anchor: Any = None
    """ID of the incident that the page must begin with, if one is requested again."""

    @classmethod
    def first(cls, window: Window) -> Self:
        """Return the first cursor of a window."""
        return cls(format_second(window.start))

    def following(self, records: Sequence[DefenderRecord], *, more: bool) -> DefenderCursor | None:
        """Return the next cursor, or None at the end.

        Raises `Broken` if the records do not allow reading to continue.
        """
        if self.anchor is not None and (not records or records[0].get("id") != self.anchor):
            raise Broken("incidents with the same update time changed during the read")
        if not more:
            return None
        updated = list(_iterate_updated(records))
        if any(one > next_one for (one, _), (next_one, _) in pairwise(updated)):
            raise Broken(f"the incidents are not sorted by {UPDATED}")
        if updated and updated[-1][0] > parse_utc(self.since):
            return DefenderCursor(updated[-1][1])
        return self._after(records)

    def _after(self, records: Sequence[DefenderRecord]) -> DefenderCursor:
        """Return the cursor after incidents with equal times, including the last one again.

        If that incident has moved, an earlier one has left the list.
        """
        again = 1 if len(records) > 1 else 0
        reached = self.skip + len(records) - again
        if reached > MAX_SKIP:
            raise Broken(f"more than {MAX_SKIP} incidents were updated at {self.since}")
        return DefenderCursor(self.since, reached, records[-1].get("id") if again else None)

    def encode(self) -> list[Any]:
        """Return the page token; the inverse of `decode`."""
        return [self.since, self.skip, self.anchor]

    @classmethod
    def decode(cls, token: Any) -> Self:
        """Return the cursor of a page token; the inverse of `encode`."""
        return cls(*token)


def is_sorted(records: Sequence[DefenderRecord]) -> bool:
    """Return whether incidents are sorted by update time, oldest first."""
    updated = [at for at, _ in _iterate_updated(records)]
    return updated == sorted(updated)


def _iterate_updated(records: Sequence[DefenderRecord]) -> Iterator[tuple[datetime, str]]:
    """Yield the update times of the records that have one, parsed and as text."""
    for record in records:
        value = text(dict(record), UPDATED)
        with suppress(ValueError):
            if value:
                yield parse_utc(value), value
