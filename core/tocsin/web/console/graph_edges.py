"""Curves between the boxes of the neighborhood graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from tocsin.reports import EdgeCurve

_BEND = 48
_WORDS_AT = 0.62  # fraction of a curve at which the labels of a bundle are far enough apart


class _Size(NamedTuple):
    width: float
    height: float


BOX = _Size(184, 40)


@dataclass(frozen=True, slots=True)
class BoxPosition:
    """Position of a box: its upper left corner and its column."""

    x: float
    y: float
    side: int
    """1 on the right, -1 on the left, 0 in the center."""
    column: int = 0
    """Number of the column; the center is 0."""

    def edge(self, side: int) -> float:
        """Return the x coordinate of the right (1) or left (-1) edge."""
        return self.x + (BOX.width if side > 0 else 0)

    @property
    def middle(self) -> float:
        """The y coordinate of the center of the box."""
        return self.y + BOX.height / 2


def curve_between(source: BoxPosition, target: BoxPosition) -> EdgeCurve:
    """Return a curve between the facing edges of two boxes."""
    leaving, arriving = _edges(source, target), _edges(target, source)
    return EdgeCurve(
        (source.edge(leaving), source.middle),
        (target.edge(arriving), target.middle),
        leaving * _BEND,
        arriving * _BEND,
    )


def words_on(source: BoxPosition, target: BoxPosition) -> tuple[float, float]:
    """Return the position of a curve's label, closer to the outer box."""
    is_outwards = target.column >= source.column
    return curve_between(source, target).at(_WORDS_AT if is_outwards else 1 - _WORDS_AT)


def _edges(one: BoxPosition, other: BoxPosition) -> int:
    """Return the edge of `one` that faces `other`: 1 right, -1 left."""
    if one.side == 0:
        return other.side
    if one.side != other.side or one.column > other.column:
        return -one.side
    return one.side
