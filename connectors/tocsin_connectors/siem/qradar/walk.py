"""Walking through offenses in the order of their ids, page by page.

Ids never change. So whatever becomes of an offense while a list is read, nothing behind it moves
up, as it would in a list by time; and no two have the same place, as they would there: the times
by which offenses are listed are whole seconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

from tocsin_connectors.siem.qradar.console import QRadarRecord, RecordRange
from tocsin_connectors.siem.records import number


@dataclass(frozen=True, slots=True)
class OffenseCursor:
    """What to ask for: the offenses behind an id, less the first few that tell none."""

    after: int = 0
    skipped: int = 0

    def following(self, part: RecordRange, asked: int) -> OffenseCursor | None:
        """Return the next step, given what this one has brought; None at the end.

        Where ids do not tell where to go on, since they are missing or in no order, it is the next
        place in the same list.
        """
        if part.ends(self.skipped, asked):
            return None
        known = list(iterate_ids(part.records))
        reached = [self.after, *(it for _, it in known)]
        if not known or any(one >= next_one for one, next_one in pairwise(reached)):
            return OffenseCursor(self.after, self.skipped + len(part.records))
        place, last = known[-1]
        return OffenseCursor(last, len(part.records) - place - 1)

    def encode(self) -> list[int]:
        """Return the token that `decode` turns back into this."""
        return [self.after, self.skipped]

    @classmethod
    def decode(cls, token: Any) -> Self:
        """Return the step that `encode` made the token of."""
        return cls(*token)


def iterate_ids(records: Sequence[QRadarRecord]) -> Iterator[tuple[int, int]]:
    """Yield the ids of those offenses that tell one, each with its place."""
    for place, record in enumerate(records):
        identifier = number(record, "id")
        if identifier is not None:
            yield place, identifier
