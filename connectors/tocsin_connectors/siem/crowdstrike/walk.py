"""Walking through the alerts of a window.

Each page is asked for from the time at which the last alert of the page before was updated: an
alert that changes meanwhile moves behind the end of the window, and nothing else moves. Only among
alerts of one and the same millisecond the token is used that came with them, which soon expires.
What comes twice is known to have been read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any, Self

from tocsin import Broken, Window
from tocsin_connectors.siem.crowdstrike.fql import UPDATED, format_time
from tocsin_connectors.siem.records import parse_utc, text


@dataclass(frozen=True, slots=True)
class AlertPage:
    """What a page brought."""

    records: Sequence[Mapping[str, Any]]
    total: int
    """How many alerts the filter finds, on all of its pages."""
    after: str | None
    server_time: datetime | None


@dataclass(frozen=True, slots=True)
class AlertCursor:
    """What to ask for: the alerts updated from `since` on, or those that follow a token."""

    since: str
    after: str | None = None

    @classmethod
    def first(cls, window: Window) -> Self:
        """Return the step to begin a window with."""
        return cls(format_time(window.start))

    def following(self, found: AlertPage) -> AlertCursor | None:
        """Return the next step, given what this one has brought; None at the end.

        Raises `Broken` where what was brought is not what can be gone on from.
        """
        reached = [format_time(moment) for moment in _iterate_updated(found.records)]
        if any(one > next_one for one, next_one in pairwise(reached)):
            raise Broken(f"the alerts are not in the order of {UPDATED}")
        if not self._leads_on(found):
            return None
        if reached and reached[-1] > self.since:
            return AlertCursor(reached[-1])
        if found.after is None:
            raise Broken(f"there is no token behind {len(found.records)} alerts of {self.since}")
        return AlertCursor(self.since, found.after)

    def _leads_on(self, found: AlertPage) -> bool:
        if not found.records:
            return False
        is_whole = self.after is None and found.total <= len(found.records)
        return not is_whole and (found.after is not None or self.after is None)

    def encode(self) -> list[Any]:
        """Return the token that `decode` turns back into this."""
        return [self.since, self.after]

    @classmethod
    def decode(cls, token: Any) -> Self:
        """Return the step that `encode` made the token of."""
        return cls(*token)


def _iterate_updated(records: Sequence[Mapping[str, Any]]) -> Iterator[datetime]:
    """Yield when those were updated that say so."""
    for record in records:
        with suppress(ValueError):
            if said := text(dict(record), UPDATED):
                yield parse_utc(said)
