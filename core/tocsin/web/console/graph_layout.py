"""Layout of the neighborhood graph: columns, boxes and lines.

The node that was asked for is in the middle. Nodes one step away are next to it on both sides,
then nodes two steps away, and so on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import log2, sqrt
from typing import Any

from tocsin.model import NodeKind
from tocsin.web.console.graph_edges import BOX, ROW_HEIGHT, BoxColumns, BoxPosition, route_edge

_ROWS = 14  # in a column
_LEFT = 0.5  # nodes from this rank on are on the left

NodeKey = tuple[str, str]
"""Kind and value of a node."""
Columns = list[list[NodeKey]]
"""The nodes of one side of the diagram, innermost column first."""
Adjacency = Mapping[NodeKey, Sequence[NodeKey]]
"""The neighbors of each node."""


def parse_node(shown: Mapping[str, str]) -> NodeKey:
    """Return the key of a node in an API response."""
    return shown["kind"], shown["value"]


def build_adjacency(edges: Iterable[Mapping[str, Any]]) -> Adjacency:
    """Return the neighbors of each node."""
    joined: dict[NodeKey, list[NodeKey]] = {}
    for edge in edges:
        source, target = parse_node(edge["source"]), parse_node(edge["target"])
        joined.setdefault(source, []).append(target)
        joined.setdefault(target, []).append(source)
    return joined


def measure_distances(middle: NodeKey, joined: Adjacency) -> dict[NodeKey, int]:
    """Return the distance of each reachable node in steps.

    Paths do not lead through sessions, as in the graph API.
    """
    found, frontier, step = {middle: 0}, [middle], 0
    while frontier:
        step += 1
        passed = [node for node in frontier if node == middle or node[0] != NodeKind.SESSION]
        following = dict.fromkeys(near for node in passed for near in joined.get(node, ()))
        frontier = [node for node in following if node not in found]
        found |= dict.fromkeys(frontier, step)
    return found


def split_sides(
    nodes: Iterable[NodeKey], steps: Mapping[NodeKey, int], joined: Adjacency
) -> tuple[Columns, Columns]:
    """Return the columns on the right and on the left; `nodes` are sorted by distance.

    Nodes one step away are distributed evenly by kind. Other nodes are placed near their inner
    neighbors, unless this would leave a side empty.
    """
    right, left = Columns(), Columns()
    ranks: dict[NodeKey, float] = {}
    for _, ring in groupby(nodes, key=lambda node: steps.get(node, len(steps))):
        inner = dict(ranks)
        ordered = sorted(ring, key=lambda node: (_rank(node, joined, inner), node[0]))
        half = (
            _split_ring([_rank(node, joined, inner) for node in ordered])
            if inner
            else _larger_half(ordered)
        )
        for side, part, begin in ((right, ordered[:half], 0.0), (left, ordered[half:], _LEFT)):
            side.extend(_split_columns(part))
            ranks |= {node: begin + _LEFT * row / len(part) for row, node in enumerate(part)}
    return right, left


def _rank(node: NodeKey, joined: Adjacency, ranks: Mapping[NodeKey, float]) -> float:
    """Return the average rank of a node's inner neighbors, from 0 (right) to 1 (left)."""
    known_by = [ranks[near] for near in joined.get(node, ()) if near in ranks]
    return sum(known_by) / len(known_by) if known_by else 0


def _larger_half(ring: Sequence[NodeKey]) -> int:
    return (len(ring) + 1) // 2


def _split_ring(ranks: Sequence[float]) -> int:
    """Return the number of nodes on the right: one quarter to three quarters of the ring."""
    near, least = sum(rank < _LEFT for rank in ranks), len(ranks) // 4
    return min(max(near, least), len(ranks) - least)


def _split_columns(nodes: Sequence[NodeKey]) -> Iterator[list[NodeKey]]:
    """Yield the nodes in columns of similar height."""
    count = -(-len(nodes) // _ROWS)
    for number in range(count):
        yield list(nodes[number::count])


MOST_NODES = 48
MOST_EDGES = 150
_MOST_LABELLED = 40  # edges; more labels would overlap
_BEFORE, _BETWEEN, _MARGIN, _BOW = 104, 76, 16, 36
_LOOP = 64  # space for an edge within the outermost column
_TYPES_SHOWN = 2
_LARGEST = 1.6


@dataclass(frozen=True, slots=True)
class NodeBox:
    """A node of the diagram."""

    place: BoxPosition
    kind: str
    value: str
    title: str | None
    severity: str | None
    members: int
    """Number of folded nodes; 1 for a node itself."""
    first: str | None
    """Value of one of the folded nodes; None for a node itself."""
    scale: float
    """Size of the node's shape, by the number of its relations."""

    @property
    def is_middle(self) -> bool:
        """Whether the node is in the center."""
        return self.place.column == 0


@dataclass(frozen=True, slots=True)
class EdgeLine:
    """All edges from one node to another."""

    source: int
    """Place of the node's box in the boxes of the drawing, from 0."""
    target: int
    path: str
    x: float
    y: float
    words: str
    label: str
    is_across: bool
    """Whether the line crosses the center, where its label would be in the way."""
    first_seen: str
    last_seen: str


@dataclass(frozen=True, slots=True)
class NeighborhoodDrawing:
    """The diagram."""

    width: float
    height: float
    columns: int
    """Number of columns on the larger side."""
    boxes: tuple[NodeBox, ...]
    lines: tuple[EdgeLine, ...]
    nodes_left_out: int
    edges_left_out: int

    @property
    def box_width(self) -> float:
        """Width of each box."""
        return BOX.width

    @property
    def is_labelled(self) -> bool:
        """Whether the lines have visible labels in addition to their titles."""
        return len(self.lines) <= _MOST_LABELLED


def draw_graph_around(
    found: Mapping[str, Any], steps: Mapping[NodeKey, int], joined: Adjacency
) -> NeighborhoodDrawing:
    """Return the diagram of the nearest nodes."""
    middle = parse_node(found["entity"])
    nodes = {parse_node(node): node for node in found["nodes"]}
    chosen = sorted(nodes, key=lambda node: steps.get(node, len(steps)))[:MOST_NODES]
    sides = split_sides((node for node in chosen if node != middle), steps, joined)
    rows = max((len(column) for side in sides for column in side), default=1)
    height = max(rows, 3) * ROW_HEIGHT + 2 * _MARGIN
    to_right, to_left = map(_side_width, sides)
    center = BoxPosition(to_left, (height - BOX.height) / 2, 0)
    places = {middle: center}
    for side, sign in zip(sides, (1, -1), strict=True):
        places |= _place_boxes(side, sign, center)
    lines, left_out = _build_lines(found["edges"], places)
    return NeighborhoodDrawing(
        width=to_left + BOX.width + to_right,
        height=height,
        columns=max(map(len, sides)),
        boxes=tuple(_build_box(nodes[node], place, joined) for node, place in places.items()),
        lines=lines,
        nodes_left_out=len(nodes) - len(chosen),
        edges_left_out=left_out,
    )


def _build_box(node: Mapping[str, Any], place: BoxPosition, joined: Adjacency) -> NodeBox:
    key, members = parse_node(node), node.get("members", 1)
    degree = max(members, len(set(joined.get(key, ()))))
    scale = min(_LARGEST, 1 + log2(max(1, degree)) / 8)
    labels = node.get("title"), node.get("severity")
    return NodeBox(place, *key, *labels, members, node.get("first"), round(scale, 2))


def _side_width(side: Columns) -> float:
    """Return the width of a side, measured from the center box."""
    columns = len(side)
    beyond = _BEFORE + columns * (BOX.width + _BETWEEN) - _BETWEEN + _BOW + _LOOP
    return _MARGIN + (beyond if columns else 0)


def _place_boxes(
    side: Columns, sign: int, center: BoxPosition
) -> Iterator[tuple[NodeKey, BoxPosition]]:
    for number, column in enumerate(side):
        out = BOX.width + _BEFORE + number * (BOX.width + _BETWEEN)
        for row, node in enumerate(column):
            up = row - (len(column) - 1) / 2
            bow = _BOW * sqrt(1 - (up / max(len(column) / 2, 1)) ** 2)
            x, y = center.x + sign * (out + bow), center.y + up * ROW_HEIGHT
            yield node, BoxPosition(x, y, sign, number + 1)


def _build_lines(
    edges: Sequence[Mapping[str, Any]], places: Mapping[NodeKey, BoxPosition]
) -> tuple[tuple[EdgeLine, ...], int]:
    """Return a line for each connected pair of nodes, and the number of edges without one."""
    pairs: dict[tuple[NodeKey, NodeKey], list[Mapping[str, Any]]] = {}
    left_out = 0
    for edge in edges:
        pair = parse_node(edge["source"]), parse_node(edge["target"])
        is_new = pair not in pairs
        if not _is_drawn(pair, places) or (is_new and len(pairs) == MOST_EDGES):
            left_out += 1
        else:
            pairs.setdefault(pair, []).append(edge)
    columns = _group_columns(places.values())
    numbers = {node: number for number, node in enumerate(places)}
    lines = tuple(
        _build_line(
            (numbers[source], numbers[target]), joining, (places[source], places[target]), columns
        )
        for (source, target), joining in pairs.items()
    )
    return lines, left_out


def _build_line(
    numbers: tuple[int, int],
    edges: Sequence[Mapping[str, Any]],
    ends: tuple[BoxPosition, BoxPosition],
    columns: BoxColumns,
) -> EdgeLine:
    types = [edge["type"] for edge in edges]
    more = f" +{len(types) - _TYPES_SHOWN}" if len(types) > _TYPES_SHOWN else ""
    path, (x, y) = route_edge(*ends, columns)
    source, target = edges[0]["source"]["value"], edges[0]["target"]["value"]
    return EdgeLine(
        source=numbers[0],
        target=numbers[1],
        path=path,
        x=x,
        y=y,
        words=", ".join(types[:_TYPES_SHOWN]) + more,
        label=f"{source} {', '.join(types)} {target}",
        is_across=ends[0].side * ends[1].side < 0,
        first_seen=min(edge["first_seen"] for edge in edges),
        last_seen=max(edge["last_seen"] for edge in edges),
    )


def _group_columns(places: Iterable[BoxPosition]) -> BoxColumns:
    columns: dict[int, list[BoxPosition]] = {}
    for place in sorted(places, key=lambda place: place.y):
        columns.setdefault(place.index, []).append(place)
    return columns


def _is_drawn(pair: tuple[NodeKey, NodeKey], places: Mapping[NodeKey, BoxPosition]) -> bool:
    return pair[0] != pair[1] and places.keys() >= set(pair)
