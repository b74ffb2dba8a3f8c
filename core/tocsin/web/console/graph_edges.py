"""Curves between the boxes of the neighborhood graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

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


@dataclass(frozen=True, slots=True)
class EdgeCurve:
    """A cubic Bezier curve with the horizontal offsets of its control points."""

    begin: tuple[float, float]
    end: tuple[float, float]
    leaves: float
    arrives: float

    @property
    def path(self) -> str:
        """Path data for SVG."""
        (x, y), (to_x, to_y) = self.begin, self.end
        bends = f"{x + self.leaves:g},{y:g} {to_x + self.arrives:g},{to_y:g}"
        return f"M{x:g},{y:g} C{bends} {to_x:g},{to_y:g}"

    def at(self, part: float) -> tuple[float, float]:
        """Return the point at a fraction of the curve, from 0 to 1."""
        (x, y), (to_x, to_y), rest = self.begin, self.end, 1 - part
        out, back = x + self.leaves, to_x + self.arrives
        begin, first, second, end = rest**3, 3 * rest**2 * part, 3 * rest * part**2, part**3
        across = begin * x + first * out + second * back + end * to_x
        return round(across, 1), round((begin + first) * y + (second + end) * to_y, 1)


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
