"""Keeping answers to a size that a ledger can hold."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

from pydantic_core import to_json

from tocsin.model import FoundEvents, Neighborhood

MAX_ANSWER_BYTES = 512 * 1024
"""Bytes of JSON that one answer may have."""


def list_content_records(content: Any) -> Sequence[Any]:
    """Return what an answer has many of; nothing where it is one record."""
    match content:
        case FoundEvents(events=records) | Neighborhood(edges=records) | tuple(records):
            return records
        case _:
            return ()


def shorten_content(content: Any) -> tuple[Any, str]:
    """Return as much of an answer as there is room for, and what to say of the rest."""
    match content:
        case FoundEvents():
            kept = _take_fitting(content.events)
            words = _describe_cut(kept, content.events, "events")
            return replace(content, events=kept, complete=False), words
        case Neighborhood():
            edges = _take_fitting(content.edges)
            ends = {node for edge in edges for node in (edge.source, edge.target)}
            nodes = tuple(n for n in content.nodes if n in ends or n == content.nodes[0])
            words = _describe_cut(edges, content.edges, "edges")
            return Neighborhood(nodes=nodes, edges=edges, complete=False), words
        case _:
            kept = _take_fitting(content)
            return kept, _describe_cut(kept, content, "records")


def _take_fitting(items: Sequence[Any]) -> tuple[Any, ...]:
    sizes = accumulate(len(to_json(item, fallback=str)) + 1 for item in items)
    return tuple(items[: bisect_right(list(sizes), MAX_ANSWER_BYTES)])


def _describe_cut(kept: Sequence[Any], items: Sequence[Any], what: str) -> str:
    return f"only {len(kept)} of {len(items)} {what} are kept: there is no room for more"
