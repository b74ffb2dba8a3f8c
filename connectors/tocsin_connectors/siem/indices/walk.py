"""Walking through documents in the order of a time, page by page.

The next page begins at the very time of the last document, without those of that time that were
seen. It needs no context at the cluster that would expire (scroll, point in time), no rights to
open one, and no sorting by `_id`, for which a cluster loads all ids into memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from tocsin import Broken, Window

MAX_SAME_TIMESTAMP = 20_000
"""So many documents may have one and the same millisecond."""


@dataclass(frozen=True, slots=True)
class DocumentCursor:
    """Where a walk stands."""

    at: int
    """The time of the last document, in milliseconds since 1970."""
    seen: tuple[str, ...]
    """The ids of the documents of that time that were seen."""

    @classmethod
    def behind(cls, hits: Sequence[Mapping[str, Any]], before: DocumentCursor | None) -> Self:
        """Return the place behind these hits; Broken where they do not say what they are."""
        try:
            stamps = [(hit["sort"][0], hit["_id"]) for hit in hits]
            last = stamps[-1][0]
        except (LookupError, TypeError):
            raise Broken("a search answered hits without `sort` and `_id`") from None
        if not isinstance(last, int) or not all(isinstance(name, str) for _, name in stamps):
            raise Broken("a search answered hits that are not sorted by a time")
        seen = before.seen if before and before.at == last else ()
        seen += tuple(name for stamp, name in stamps if stamp == last)
        if len(seen) > MAX_SAME_TIMESTAMP:
            raise Broken(f"more than {MAX_SAME_TIMESTAMP:,} documents have one time: {last}")
        return cls(last, seen)

    def encode(self) -> list[Any]:
        """Return the token that `decode` turns back into this."""
        return [self.at, list(self.seen)]

    @classmethod
    def decode(cls, token: Any) -> Self:
        """Return the place that `encode` made the token of."""
        at, seen = token
        return cls(at, tuple(seen))


def build_page_query(
    field: str, size: int, *clauses: Any, place: DocumentCursor | None, newest_first: bool = False
) -> dict[str, Any]:
    """Return the search for the next page of documents that all clauses let by."""
    order, bound = ("desc", "lte") if newest_first else ("asc", "gte")
    query: dict[str, Any] = {"filter": list(clauses)}
    if place is not None:
        query["filter"].append({"range": {field: {bound: place.at, "format": "epoch_millis"}}})
        query["must_not"] = [{"ids": {"values": list(place.seen)}}]
    return {
        "size": size,
        "track_total_hits": size + 1,  # enough to know whether there are more
        "query": {"bool": query},
        "sort": [{field: {"order": order, "numeric_type": "date", "unmapped_type": "date"}}],
    }


def build_time_query(field: str, window: Window) -> dict[str, Any]:
    """Return the clause for what has a time of the window."""
    bounds = {"gte": _format_time(window.start), "lt": _format_time(window.end)}
    return {"range": {field: {**bounds, "format": "strict_date_optional_time"}}}


def _format_time(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds")
