"""How far what is known around a node is from it, and in which columns of a drawing it stands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from tocsin.model import NodeKind

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
