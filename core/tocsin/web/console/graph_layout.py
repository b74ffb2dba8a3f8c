"""Layout of the neighborhood graph: columns, boxes and lines.

The node that was asked for is in the middle. Nodes one step away are next to it on both sides,
then nodes two steps away, and so on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import sqrt
from typing import Any

from tocsin.model import NodeKind
from tocsin.web.console.graph_edges import BOX, BoxPosition, curve_between, words_on

_ROWS = 14  # in a column
_LEFT = 0.5  # from this rank on a node stands on the left

NodeKey = tuple[str, str]
"""Kind and value."""
Columns = list[list[NodeKey]]
"""The nodes of one side of a drawing, the innermost column first."""
Adjacency = Mapping[NodeKey, Sequence[NodeKey]]
"""What edges join each node with."""


def parse_node(shown: Mapping[str, str]) -> NodeKey:
    """Return a node out of an answer."""
    return shown["kind"], shown["value"]


def build_adjacency(edges: Iterable[Mapping[str, Any]]) -> Adjacency:
    """Return what the edges of an answer join each node with."""
    joined: dict[NodeKey, list[NodeKey]] = {}
    for edge in edges:
        source, target = parse_node(edge["source"]), parse_node(edge["target"])
        joined.setdefault(source, []).append(target)
        joined.setdefault(target, []).append(source)
    return joined


def measure_distances(middle: NodeKey, joined: Adjacency) -> dict[NodeKey, int]:
    """Return how many steps away each node is that edges lead to.

    Sessions are not passed through, as in the graph's own answers.
    """
    found, frontier, step = {middle: 0}, [middle], 0
    while frontier:
        step += 1
        passed = [it for it in frontier if it == middle or it[0] != NodeKind.SESSION]
        following = dict.fromkeys(near for it in passed for near in joined.get(it, ()))
        frontier = [it for it in following if it not in found]
        found |= dict.fromkeys(frontier, step)
    return found


def split_sides(
    nodes: Iterable[NodeKey], steps: Mapping[NodeKey, int], joined: Adjacency
) -> tuple[Columns, Columns]:
    """Return what stands to the right and to the left; `nodes` are the nearest first.

    What is one step away is shared out evenly, by kind; all else stands near what it is
    known by, as far as that leaves no side bare.
    """
    right, left = Columns(), Columns()
    ranks: dict[NodeKey, float] = {}
    for _, ring in groupby(nodes, key=lambda it: steps.get(it, len(steps))):
        inner = dict(ranks)
        ordered = sorted(ring, key=lambda it: (_rank(it, joined, inner), it[0]))
        half = _half([_rank(it, joined, inner) for it in ordered]) if inner else _most(ordered)
        for side, part, begin in ((right, ordered[:half], 0.0), (left, ordered[half:], _LEFT)):
            side.extend(_columns(part))
            ranks |= {it: begin + _LEFT * row / len(part) for row, it in enumerate(part)}
    return right, left


def _rank(node: NodeKey, joined: Adjacency, ranks: Mapping[NodeKey, float]) -> float:
    """Return about where those stand that a node is known by, from 0 (right) to 1 (left)."""
    known_by = [ranks[it] for it in joined.get(node, ()) if it in ranks]
    return sum(known_by) / len(known_by) if known_by else 0


def _most(ring: Sequence[NodeKey]) -> int:
    return (len(ring) + 1) // 2


def _half(ranks: Sequence[float]) -> int:
    """Return how many of a ring stand on the right: a quarter at least, and at most three."""
    near, least = sum(rank < _LEFT for rank in ranks), len(ranks) // 4
    return min(max(near, least), len(ranks) - least)


def _columns(nodes: Sequence[NodeKey]) -> Iterator[list[NodeKey]]:
    """Yield the nodes in columns that are about as high."""
    count = -(-len(nodes) // _ROWS)
    for number in range(count):
        yield list(nodes[number::count])


MOST_NODES = 48
MOST_EDGES = 150
_MOST_LABELLED = 40  # edges; the words of more would hide each other
_ROW, _BEFORE, _BETWEEN, _MARGIN, _BOW = BOX.height + 14, 104, 76, 16, 36
_LOOP = 64  # how much room an edge within the outermost column takes
_TYPES_SHOWN = 2


@dataclass(frozen=True, slots=True)
class NodeBox:
    """A node that is drawn."""

    place: BoxPosition
    kind: str
    value: str

    @property
    def is_middle(self) -> bool:
        """Whether all else stands around it."""
        return self.place.column == 0


@dataclass(frozen=True, slots=True)
class EdgeLine:
    """All edges from one node to another."""

    path: str
    x: float
    y: float
    words: str
    label: str
    is_across: bool
    """Whether it leads from the one side to the other, where its words would be in the way."""


@dataclass(frozen=True, slots=True)
class NeighborhoodDrawing:
    """All that is drawn."""

    width: float
    height: float
    columns: int
    """How many there are on the side that has more."""
    boxes: tuple[NodeBox, ...]
    lines: tuple[EdgeLine, ...]
    nodes_left_out: int
    edges_left_out: int

    @property
    def box_width(self) -> float:
        """How wide each box is."""
        return BOX.width

    @property
    def is_labelled(self) -> bool:
        """Whether lines bear their words, beside having them as a title."""
        return len(self.lines) <= _MOST_LABELLED


def draw_graph_around(
    found: Mapping[str, Any], steps: Mapping[NodeKey, int], joined: Adjacency
) -> NeighborhoodDrawing:
    """Return the drawing, of the nearest where there are many."""
    middle = parse_node(found["entity"])
    nodes = [parse_node(node) for node in found["nodes"]]
    chosen = sorted(nodes, key=lambda it: steps.get(it, len(steps)))[:MOST_NODES]
    sides = split_sides((it for it in chosen if it != middle), steps, joined)
    rows = max((len(column) for side in sides for column in side), default=1)
    height = max(rows, 3) * _ROW + 2 * _MARGIN
    to_right, to_left = map(_reach, sides)
    center = BoxPosition(to_left, (height - BOX.height) / 2, 0)
    places = {middle: center}
    for side, sign in zip(sides, (1, -1), strict=True):
        places |= _placed(side, sign, center)
    lines, left_out = _lines(found["edges"], places)
    return NeighborhoodDrawing(
        width=to_left + BOX.width + to_right,
        height=height,
        columns=max(map(len, sides)),
        boxes=tuple(NodeBox(places[it], *it) for it in chosen),
        lines=lines,
        nodes_left_out=len(nodes) - len(chosen),
        edges_left_out=left_out,
    )


def _reach(side: Columns) -> float:
    """Return how far a side reaches from the box in the middle."""
    columns = len(side)
    beyond = _BEFORE + columns * (BOX.width + _BETWEEN) - _BETWEEN + _BOW + _LOOP
    return _MARGIN + (beyond if columns else 0)


def _placed(side: Columns, sign: int, center: BoxPosition) -> Iterator[tuple[NodeKey, BoxPosition]]:
    for number, column in enumerate(side):
        out = BOX.width + _BEFORE + number * (BOX.width + _BETWEEN)
        for row, node in enumerate(column):
            up = row - (len(column) - 1) / 2
            bow = _BOW * sqrt(1 - (up / max(len(column) / 2, 1)) ** 2)
            x, y = center.x + sign * (out + bow), center.y + up * _ROW
            yield node, BoxPosition(x, y, sign, number + 1)


def _lines(
    edges: Sequence[Mapping[str, Any]], places: Mapping[NodeKey, BoxPosition]
) -> tuple[tuple[EdgeLine, ...], int]:
    """Return a line for each pair of nodes that edges join, and how many edges have none."""
    pairs: dict[tuple[NodeKey, NodeKey], list[str]] = {}
    left_out = 0
    for edge in edges:
        pair = parse_node(edge["source"]), parse_node(edge["target"])
        is_new = pair not in pairs
        if not _is_drawn(pair, places) or (is_new and len(pairs) == MOST_EDGES):
            left_out += 1
        else:
            pairs.setdefault(pair, []).append(edge["type"])
    lines = tuple(_line(*pair, types, places) for pair, types in pairs.items())
    return lines, left_out


def _line(
    source: NodeKey, target: NodeKey, types: Sequence[str], places: Mapping[NodeKey, BoxPosition]
) -> EdgeLine:
    ends = places[source], places[target]
    more = f" +{len(types) - _TYPES_SHOWN}" if len(types) > _TYPES_SHOWN else ""
    x, y = words_on(*ends)
    return EdgeLine(
        path=curve_between(*ends).path,
        x=x,
        y=y,
        words=", ".join(types[:_TYPES_SHOWN]) + more,
        label=f"{source[1]} {', '.join(types)} {target[1]}",
        is_across=ends[0].side * ends[1].side < 0,
    )


def _is_drawn(pair: tuple[NodeKey, NodeKey], places: Mapping[NodeKey, BoxPosition]) -> bool:
    return pair[0] != pair[1] and places.keys() >= set(pair)
