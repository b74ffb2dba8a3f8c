"""Time-ordered search over indices, page by page.

The next page begins at the timestamp of the last document and excludes the documents of that
timestamp that were seen. This needs no context in the cluster that would expire (scroll, point in
time), no permission to open one, and no sorting by `_id`, for which a cluster loads all IDs into
memory.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from tocsin import Broken, Listing, SiemEvent, TryLater, Window
from tocsin_connectors.siem.indices.client import MAX_HITS, IndexClient, IndexSearchResult

MAX_SAME_TIMESTAMP = 20_000
"""Maximum number of documents with the same timestamp."""


@dataclass(frozen=True, slots=True)
class DocumentCursor:
    """Position in a time-ordered search."""

    at: int
    """Timestamp of the last document, in milliseconds since 1970."""
    seen: tuple[str, ...]
    """IDs of the documents with that timestamp that were seen."""

    @classmethod
    def behind(cls, hits: Sequence[Mapping[str, Any]], before: DocumentCursor | None) -> Self:
        """Return the cursor after these hits. Raises `Broken` for hits without an ID or a time."""
        try:
            stamps = [(hit["sort"][0], hit["_id"]) for hit in hits]
            last = stamps[-1][0]
        except (LookupError, TypeError):
            raise Broken("a search returned hits without `sort` and `_id`") from None
        if not isinstance(last, int) or not all(isinstance(name, str) for _, name in stamps):
            raise Broken("a search returned hits that are not sorted by time")
        seen = before.seen if before and before.at == last else ()
        seen += tuple(name for stamp, name in stamps if stamp == last)
        if len(seen) > MAX_SAME_TIMESTAMP:
            raise Broken(
                f"more than {MAX_SAME_TIMESTAMP:,} documents have the same timestamp: {last}"
            )
        return cls(last, seen)

    def encode(self) -> list[Any]:
        """Return the page token; the inverse of `decode`."""
        return [self.at, list(self.seen)]

    @classmethod
    def decode(cls, token: Any) -> Self:
        """Return the cursor of a page token; the inverse of `encode`."""
        at, seen = token
        return cls(at, tuple(seen))


def build_page_query(
    field: str, size: int, *clauses: Any, place: DocumentCursor | None, newest_first: bool = False
) -> dict[str, Any]:
    """Return the search for the next page of documents that match all clauses."""
    order, bound = ("desc", "lte") if newest_first else ("asc", "gte")
    query: dict[str, Any] = {"filter": list(clauses)}
    if place is not None:
        query["filter"].append({"range": {field: {bound: place.at, "format": "epoch_millis"}}})
        query["must_not"] = [{"ids": {"values": list(place.seen)}}]
    return {
        "size": size,
        "track_total_hits": size + 1,  # enough to detect further hits
        "query": {"bool": query},
        "sort": [{field: {"order": order, "numeric_type": "date", "unmapped_type": "date"}}],
    }


def build_time_query(field: str, window: Window) -> dict[str, Any]:
    """Return the query for documents with a time in the window."""
    bounds = {"gte": _format_time(window.start), "lt": _format_time(window.end)}
    return {"range": {field: {**bounds, "format": "strict_date_optional_time"}}}


def _format_time(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds")


MAX_PAGE_SIZE = 500


@dataclass(frozen=True, slots=True)
class LogIndices:
    """Indices of a cluster with a time field."""

    cluster: IndexClient
    indices: str
    field: str
    """Time field."""


async def list_oldest(
    logs: LogIndices, token: Any, limit: int, *clauses: Any
) -> tuple[Listing, IndexSearchResult]:
    """Return the page of a token, oldest documents first, and the full result.

    The token None stands for the first page. All clauses must match.
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
    """Yield the hits of a window that match a clause, latest first.

    Raises `TryLater` when the search limit is reached.
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
            raise TryLater(
                f"{logs.indices}: search limit reached after the latest {seen:,} documents"
            )
        place = DocumentCursor.behind(found.hits, place)


async def build_events(
    hits: AsyncGenerator[dict[str, Any], None],
    event_of: Callable[[dict[str, Any]], SiemEvent | None],
    limit: int,
) -> AsyncGenerator[SiemEvent, None]:
    """Yield the events of hits, `limit` at most. Invalid hits are skipped."""
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
