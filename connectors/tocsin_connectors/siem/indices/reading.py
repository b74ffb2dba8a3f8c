"""Reading indices page by page: what is new, the oldest first, or what is asked for, the latest."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Any

from tocsin import Listing, SiemEvent, TryLater, Window
from tocsin_connectors.siem.indices.cluster import MAX_HITS, IndexClient, IndexSearchResult
from tocsin_connectors.siem.indices.walk import DocumentCursor, build_page_query, build_time_query

MAX_PAGE_SIZE = 500


@dataclass(frozen=True, slots=True)
class LogIndices:
    """Indices of a cluster whose documents have a time."""

    cluster: IndexClient
    indices: str
    field: str
    """Where they have it."""


async def list_oldest(
    logs: LogIndices, token: Any, limit: int, *clauses: Any
) -> tuple[Listing, IndexSearchResult]:
    """Return the page of a token, the first one for None, and the answer that it was in.

    It holds what all clauses let by, the oldest first.
    """
    place = None if token is None else DocumentCursor.decode(token)
    found = await logs.cluster.search(
        logs.indices, build_page_query(logs.field, limit, *clauses, place=place)
    )
    is_last = found.total <= len(found.hits)
    following = None if is_last else DocumentCursor.behind(found.hits, place).encode()
    return Listing(records=found.hits, next_token=following, server_time=found.server_time), found


async def iterate_latest(
    logs: LogIndices, clause: Any, window: Window, limit: int
) -> AsyncGenerator[dict[str, Any], None]:
    """Yield the hits of a window that a clause lets by, the latest first, as many as are taken.

    Raises `TryLater` where so many were taken that no more are looked at.
    """
    place, size, seen = None, min(limit + 1, MAX_PAGE_SIZE), 0
    clauses = build_time_query(logs.field, window), clause
    while True:
        body = build_page_query(logs.field, size, *clauses, place=place, newest_first=True)
        found = await logs.cluster.search(logs.indices, body)
        for hit in found.hits:
            yield hit
        if found.total <= len(found.hits):
            return
        seen += len(found.hits)
        if seen >= max(MAX_HITS, limit):
            raise TryLater(f"{logs.indices} were searched in part only: {seen:,} of the latest")
        place = DocumentCursor.behind(found.hits, place)


async def build_events(
    hits: AsyncGenerator[dict[str, Any], None],
    event_of: Callable[[dict[str, Any]], SiemEvent | None],
    limit: int,
) -> AsyncGenerator[SiemEvent, None]:
    """Yield the events that hits are, `limit` at most; one that is a ValueError costs no other."""
    left = limit
    async with aclosing(hits):
        while left > 0:
            hit = await anext(hits, None)
            if hit is None:
                return
            with suppress(ValueError):
                if event := event_of(hit):
                    left -= 1
                    yield event
