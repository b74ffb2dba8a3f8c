"""Citations: graph edges with their sources, and links to what a report cites."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tocsin.web.console.graph_layout import NodeKey, parse_node

AT_ONCE = 100
_SHOWN_AT_ONCE = 3


class SourceLink(NamedTuple):
    """Source of an edge."""

    words: str
    path: str | None
    """Page of the source, None if it has none."""


def build_rows(
    edges: Sequence[Mapping[str, Any]], steps: Mapping[NodeKey, int], skipped: int
) -> list[dict[str, Any]]:
    """Return one page of edges with their sources, nearest and latest first."""
    latest = sorted(edges, key=lambda edge: edge["last_seen"], reverse=True)
    nearest = sorted(latest, key=lambda edge: _distance(edge, steps))
    return [add_sources(edge) for edge in nearest[skipped : skipped + AT_ONCE]]


def add_sources(edge: Mapping[str, Any]) -> dict[str, Any]:
    """Return an edge with its sources, split into the visible ones and the rest."""
    sources = [parse_source(each) for each in edge["known_from"]]
    return {**edge, "sources": sources[:_SHOWN_AT_ONCE], "more": sources[_SHOWN_AT_ONCE:]}


def parse_source(known_from: str) -> SourceLink:
    """Parse a reference of `known_from`."""
    kind, _, rest = known_from.partition(":")
    record, _, part = rest.partition("#")
    match kind:
        case "incident":
            return SourceLink(f"incident {record}", f"/incidents/{record}")
        case "session":
            return SourceLink(_in_session(part), f"/investigations/{record}")
    return SourceLink(f"{kind} {rest}" if rest else kind, None)


def _in_session(part: str) -> str:
    if part.startswith("F"):
        return f"finding {part[1:]} of an investigation"
    return f"step {part} of an investigation" if part else "an investigation"


def _distance(edge: Mapping[str, Any], steps: Mapping[NodeKey, int]) -> tuple[int, int]:
    ends = (steps.get(parse_node(edge[end]), len(steps)) for end in ("source", "target"))
    near, far = sorted(ends)
    return near, far


def link_to_reference(session_id: str, reference: str) -> str | None:
    """Return the page of a reference such as `step:12` or `incident:7`, None if it has none."""
    kind, _, number = reference.partition(":")
    if not (number.isascii() and number.isdigit()):
        return None
    match kind:
        case "step":
            return f"/investigations/{session_id}/steps/{number}"
        case "incident":
            return f"/incidents/{number}"
    return None
