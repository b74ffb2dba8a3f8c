"""Keeping answers to a size that a ledger can hold."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

from pydantic_core import to_json

from tocsin.model import EventsFound, Neighbourhood

LARGEST = 512 * 1024
"""Bytes of JSON that one answer may have."""


def records_of(content: Any) -> Sequence[Any]:
    """Return what an answer has many of; nothing where it is one record."""
    match content:
        case EventsFound(events=records) | Neighbourhood(edges=records) | tuple(records):
            return records
        case _:
            return ()


def bounded(content: Any) -> tuple[Any, str]:
    """Return as much of an answer as there is room for, and what to say of the rest."""
    match content:
        case EventsFound():
            kept = _fitting(content.events)
            words = _words(kept, content.events, "events")
            return replace(content, events=kept, complete=False), words
        case Neighbourhood():
            edges = _fitting(content.edges)
            ends = {node for edge in edges for node in (edge.source, edge.target)}
            nodes = tuple(n for n in content.nodes if n in ends or n == content.nodes[0])
            words = _words(edges, content.edges, "edges")
            return Neighbourhood(nodes=nodes, edges=edges, complete=False), words
        case _:
            kept = _fitting(content)
            return kept, _words(kept, content, "records")


def _fitting(items: Sequence[Any]) -> tuple[Any, ...]:
    sizes = accumulate(len(to_json(item, fallback=str)) + 1 for item in items)
    return tuple(items[: bisect_right(list(sizes), LARGEST)])


def _words(kept: Sequence[Any], items: Sequence[Any], what: str) -> str:
    return f"only {len(kept)} of {len(items)} {what} are kept: there is no room for more"
