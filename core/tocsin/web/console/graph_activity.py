"""New relations of a neighborhood over time, as bars."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

WIDTH, HEIGHT = 1_000, 40
"""Size of the bars in units."""
BARS = 40
_GAP = 3
_LEAST = 3  # lower bars would be invisible
_SHORTEST = timedelta(minutes=1)  # of a bar


@dataclass(frozen=True, slots=True)
class ActivityBar:
    """The relations that were first seen in a period."""

    since: str
    until: str
    """Start and end of the period, in UTC."""
    count: int
    x: float
    y: float
    width: float
    height: float


def draw_activity(edges: Iterable[Mapping[str, Any]]) -> list[ActivityBar]:
    """Return bars from the first to the last new relation; none if all are from one minute."""
    seen = [datetime.fromisoformat(edge["first_seen"]) for edge in edges]
    if not seen or max(seen) - min(seen) < _SHORTEST:
        return []
    start = min(seen).replace(second=0, microsecond=0)
    minutes = (max(seen) - start) // _SHORTEST + 1
    length = _SHORTEST * -(-minutes // BARS)
    number = -(-minutes // (length // _SHORTEST))
    counts = Counter((each - start) // length for each in seen)
    width, unit = WIDTH / number, HEIGHT / max(counts.values())
    return [
        ActivityBar(
            since=_format(start + place * length),
            until=_format(_add(start + place * length, length)),
            count=count,
            x=round(place * width, 1),
            y=round(HEIGHT - height, 1),
            width=round(width - _GAP, 1),
            height=round(height, 1),
        )
        for place in range(number)
        if (count := counts[place]) and (height := max(_LEAST, count * unit))
    ]


def _add(moment: datetime, length: timedelta) -> datetime:
    """Return the end of a period, at most the latest time that Python supports."""
    last = datetime.max.replace(tzinfo=UTC)
    return moment + length if length < last - moment else last


def _format(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
