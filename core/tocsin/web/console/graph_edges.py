"""Curves between the boxes of the neighborhood graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

_BEND = 48
_WORDS_AT = 0.62  # of a curve: where those of a bundle are far enough from each other


class _Size(NamedTuple):
    width: float
    height: float


BOX = _Size(184, 40)


@dataclass(frozen=True, slots=True)
class BoxPosition:
    """Where a box stands: its upper left corner, and which of the columns it is in."""

    x: float
    y: float
    side: int
    """1 to the right of the middle, -1 to the left, 0 for what stands in the middle."""
    column: int = 0
    """Counted from the middle, which is 0."""

    def edge(self, side: int) -> float:
        """Return where its right (1) or left (-1) edge is."""
        return self.x + (BOX.width if side > 0 else 0)

    @property
    def middle(self) -> float:
        """How far down its middle is."""
        return self.y + BOX.height / 2


@dataclass(frozen=True, slots=True)
class EdgeCurve:
    """A cubic Bezier curve: its begin, its end, and how far to the right it leaves and arrives."""

    begin: tuple[float, float]
    end: tuple[float, float]
    leaves: float
    arrives: float

    @property
    def path(self) -> str:
        """As SVG has it."""
        (x, y), (to_x, to_y) = self.begin, self.end
        bends = f"{x + self.leaves:g},{y:g} {to_x + self.arrives:g},{to_y:g}"
        return f"M{x:g},{y:g} C{bends} {to_x:g},{to_y:g}"

    def at(self, part: float) -> tuple[float, float]:
        """Return where it is after this part of it, from 0 to 1."""
        (x, y), (to_x, to_y), rest = self.begin, self.end, 1 - part
        out, back = x + self.leaves, to_x + self.arrives
        begin, first, second, end = rest**3, 3 * rest**2 * part, 3 * rest * part**2, part**3
        across = begin * x + first * out + second * back + end * to_x
        return round(across, 1), round((begin + first) * y + (second + end) * to_y, 1)


def curve_between(source: BoxPosition, target: BoxPosition) -> EdgeCurve:
    """Return a curve from the edges of two boxes that look at each other."""
    leaving, arriving = _edges(source, target), _edges(target, source)
    return EdgeCurve(
        (source.edge(leaving), source.middle),
        (target.edge(arriving), target.middle),
        leaving * _BEND,
        arriving * _BEND,
    )


def words_on(source: BoxPosition, target: BoxPosition) -> tuple[float, float]:
    """Return where a curve's words stand: nearer to the box that is further from the middle."""
    is_outwards = target.column >= source.column
    return curve_between(source, target).at(_WORDS_AT if is_outwards else 1 - _WORDS_AT)


def _edges(one: BoxPosition, other: BoxPosition) -> int:
    """Return at which edge of the one box a curve to the other begins: 1 right, -1 left."""
    if one.side == 0:
        return other.side
    if one.side != other.side or one.column > other.column:
        return -one.side
    return one.side
