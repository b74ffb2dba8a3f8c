"""Routes of the edges between the boxes of the neighborhood graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from tocsin.reports import EdgeCurve

_BEND = 48
_WORDS_AT = 0.62  # fraction of a curve at which the labels of a bundle are far enough apart
_GAP = 14  # between two boxes of a column
_ASIDE = 18  # distance of a route from the boxes of a column beside which it leads


class _Size(NamedTuple):
    width: float
    height: float


BOX = _Size(184, 40)
ROW_HEIGHT = BOX.height + _GAP


@dataclass(frozen=True, slots=True)
class BoxPosition:
    """Position of a box: its upper left corner and its column."""

    x: float
    y: float
    side: int
    """1 on the right, -1 on the left, 0 in the center."""
    column: int = 0
    """Number of the column; the center is 0."""

    @property
    def index(self) -> int:
        """Number of the column from left to right; the center is 0."""
        return self.side * self.column

    def edge(self, side: int) -> float:
        """Return the x coordinate of the right (1) or left (-1) edge."""
        return self.x + (BOX.width if side > 0 else 0)

    @property
    def middle(self) -> float:
        """The y coordinate of the center of the box."""
        return self.y + BOX.height / 2


class EdgeRoute(NamedTuple):
    """Path data of an edge for SVG, and the position of its label."""

    path: str
    label_at: tuple[float, float]


BoxColumns = Mapping[int, Sequence[BoxPosition]]
"""The boxes of each column from top to bottom, by its index."""


def route_edge(source: BoxPosition, target: BoxPosition, columns: BoxColumns) -> EdgeRoute:
    """Return a route between two boxes that does not lead behind another box."""
    if source.index == target.index:
        return _route_beside(source, target, columns[source.index])
    side = 1 if target.index > source.index else -1
    passed = [columns[index] for index in range(source.index + side, target.index, side)]
    return _route_through(source, target, passed, side)


def _route_through(
    source: BoxPosition, target: BoxPosition, passed: Sequence[Sequence[BoxPosition]], side: int
) -> EdgeRoute:
    """Return a route through the gaps of the columns between two boxes."""
    points = [(source.edge(side), source.middle)]
    last = (target.edge(-side), target.middle)
    for number, boxes in enumerate(passed, start=1):
        part = number / (len(passed) + 1)
        y = _find_gap(boxes, points[0][1] + part * (last[1] - points[0][1]))
        points += [(_border(boxes, -side), y), (_border(boxes, side), y)]
    points.append(last)
    curves = [_curve(*ends, side) for ends in list(pairwise(points))[::2]]
    path = curves[0].path
    for curve in curves[1:]:
        path += f" L{curve.path[1:]}"  # straight to its beginning
    is_outwards = target.column >= source.column
    labelled, part = (curves[-1], _WORDS_AT) if is_outwards else (curves[0], 1 - _WORDS_AT)
    return EdgeRoute(path, labelled.at(part))


def _curve(begin: tuple[float, float], end: tuple[float, float], side: int) -> EdgeCurve:
    bend = side * min(_BEND, abs(end[0] - begin[0]) / 2)
    return EdgeCurve(begin, end, bend, -bend)


def _route_beside(
    source: BoxPosition, target: BoxPosition, boxes: Sequence[BoxPosition]
) -> EdgeRoute:
    """Return a route on the outer side of the column of both boxes."""
    side = source.side
    low, high = sorted((source.y, target.y))
    between = [box for box in boxes if low <= box.y <= high]
    x = _border(between, side) + side * _ASIDE
    down = BOX.height / 2 if target.y > source.y else -BOX.height / 2
    begin, end = (source.edge(side), source.middle), (target.edge(side), target.middle)
    path = (
        f"M{begin[0]:g},{begin[1]:g} Q{x:g},{begin[1]:g} {x:g},{begin[1] + down:g} "
        f"L{x:g},{end[1] - down:g} Q{x:g},{end[1]:g} {end[0]:g},{end[1]:g}"
    )
    return EdgeRoute(path, (round(x, 1), round((begin[1] + end[1]) / 2, 1)))


def _border(boxes: Sequence[BoxPosition], side: int) -> float:
    """Return the x coordinate of the outermost right (1) or left (-1) edge."""
    edges = [box.edge(side) for box in boxes]
    return max(edges) if side > 0 else min(edges)


def _find_gap(boxes: Sequence[BoxPosition], wanted: float) -> float:
    """Return the y coordinate of the gap above, between or below the boxes that is closest."""
    gaps = [boxes[0].y - _GAP / 2, *(box.y + BOX.height + _GAP / 2 for box in boxes)]
    return min(gaps, key=lambda gap: abs(gap - wanted))
