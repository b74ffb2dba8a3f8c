"""Knowledge graph: neighborhoods and paths."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest
from typing import Any

from tocsin.errors import RequestError
from tocsin.model import RelationType
from tocsin.web.console.citations import AT_ONCE, add_sources, build_rows
from tocsin.web.console.graph_activity import draw_activity
from tocsin.web.console.graph_folds import count_nodes, fold_equals
from tocsin.web.console.graph_layout import (
    NodeKey,
    build_adjacency,
    draw_graph_around,
    measure_distances,
    parse_node,
)
from tocsin.web.console.page_request import PageRequest, select_period
from tocsin.web.console.pages import ConsoleAction, ConsolePage
from tocsin.web.problems import describe_error
from tocsin.web.routes.graph import get_graph_entity, get_graph_path, get_graph_statistics
from tocsin.web.routes.incidents import list_incidents
from tocsin.web.schemas.graph import KINDS

_FILTERS = ("kind", "depth", "limit")
_ENDS = ("from", "to", "from_kind", "to_kind")
_MOST_SKIPPED = 10_000
_OPEN = "open"
"""Query parameter with the kind and value of a node whose group is unfolded."""


async def show_graph(request: PageRequest) -> Mapping[str, Any]:
    """Return the neighborhood of a node, or the size of the graph."""
    entity = request.query.get("entity")
    asked = _read_filters(request, _FILTERS, ("types", "kinds")) | select_period(request)
    context = {"entity": entity, "asked": asked, **_CHOICES, "found": None, "stats": None}
    if entity is None:
        latest = await request.ask(list_incidents, limit="8")
        stats = await request.ask(get_graph_statistics)
        return {**context, "stats": stats, "latest": latest["incidents"]}
    try:
        found = await request.ask(get_graph_entity, {"value": entity}, **asked)
    except RequestError as error:
        return {**context, "fault": describe_error(request.http, error)}
    opened = _read_opened(request)
    drawn = found if "unfold" in request.query else fold_equals(found, opened)
    folds = len(found["nodes"]) - len(drawn["nodes"])
    return {
        **context,
        "found": found,
        **_build_context(found, drawn, _read_skip(request)),
        "folds": folds,
        "titles": {node["value"]: node["title"] for node in found["nodes"] if node["title"]},
        "opened": [(_OPEN, ":".join(node)) for node in opened],
        "is_unfolded": drawn is found or opened,
        "count_nodes": count_nodes,
    }


def _build_context(
    found: Mapping[str, Any], drawn: Mapping[str, Any], skipped: int
) -> dict[str, Any]:
    middle = parse_node(found["entity"])
    steps = measure_distances(middle, build_adjacency(found["edges"]))
    joined = build_adjacency(drawn["edges"])
    following = skipped + AT_ONCE
    return {
        "drawing": draw_graph_around(drawn, measure_distances(middle, joined), joined),
        "activity": draw_activity(found["edges"]),
        "rows": build_rows(found["edges"], steps, skipped),
        "skipped": skipped,
        "following": following if following < len(found["edges"]) else None,
    }


async def show_path(request: PageRequest) -> Mapping[str, Any]:
    """Return the path between two nodes with the edges of each step."""
    asked = _read_filters(request, _ENDS, ("types",))
    context = {"asked": asked, **_CHOICES, "path": None, "hops": [], "titles": {}}
    if not {"from", "to"} <= asked.keys():
        return context
    try:
        path = await request.ask(get_graph_path, None, **asked)
    except RequestError as error:
        return {**context, "fault": describe_error(request.http, error)}
    return {**context, "path": path, "hops": _build_hops(path)}


def _build_hops(path: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return each node of a path with the edges to the next node."""
    nodes = path["nodes"]
    edges = [add_sources(edge) for edge in path["edges"]]
    return [
        {"node": node, "edges": [edge for edge in edges if _joins(edge, node, after)]}
        for node, after in zip_longest(nodes, nodes[1:])
    ]


def _joins(edge: Mapping[str, Any], one: object, other: object) -> bool:
    return (edge["source"], edge["target"]) in ((one, other), (other, one))


def _read_filters(
    request: PageRequest, names: tuple[str, ...], several: tuple[str, ...]
) -> dict[str, str]:
    """Return the filters in the page's query, with multiple choices joined by commas."""
    asked = {name: request.query[name] for name in names if name in request.query}
    given = request.http.query
    lists = {name: ",".join(filter(None, given.getall(name, []))) for name in several}
    return asked | {name: chosen for name, chosen in lists.items() if chosen}


def _read_opened(request: PageRequest) -> list[NodeKey]:
    """Return one node of each group that is shown unfolded."""
    given = (value.partition(":") for value in request.http.query.getall(_OPEN, []))
    return [(kind, value) for kind, _, value in given if value]


def _read_skip(request: PageRequest) -> int:
    """Return the number of relations to skip, 0 if the query has no valid number."""
    text = request.query.get("skip", "")
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(_MOST_SKIPPED))
    return int(text) if is_number else 0


_CHOICES: Mapping[str, Any] = {"node_kinds": KINDS, "relation_types": list(RelationType)}
PAGES = (
    ConsolePage(path="/graph", view=show_graph, template="graph.html.j2", section="graph"),
    ConsolePage(path="/graph/path", view=show_path, template="graph_path.html.j2", section="graph"),
)
ACTIONS: tuple[ConsoleAction, ...] = ()
