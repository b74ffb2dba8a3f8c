"""Client of an OpenSearch or Elasticsearch cluster, with time-ordered search, page by page.

A search counts only if every shard has answered.

The next page starts at the timestamp of the last document, and excludes the documents with this
timestamp that were already seen. This avoids a context in the cluster (scroll, point in time),
which could expire and requires a permission. It also avoids sorting by `_id`, for which a cluster
loads all IDs into memory.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self
from urllib.parse import quote

from tocsin import (
    Api,
    ApiResponse,
    ApiSettings,
    Broken,
    Listing,
    SiemEvent,
    Tools,
    TryLater,
    Window,
)

MAX_HITS = 10_000
"""Default of `index.max_result_window`."""
_DOCUMENTS_PER_REQUEST = 100
"""Documents per request: responses are limited, and documents may be long."""
_MAX_REASON_LENGTH = 200
MAX_SAME_TIMESTAMP = 20_000
"""Maximum number of documents with the same timestamp."""
MAX_PAGE_SIZE = 500


@dataclass(frozen=True, slots=True)
class IndexSearchResult:
    """Result of a search."""

    hits: Sequence[dict[str, Any]]
    total: int
    """Total number of hits, as far as counting was requested."""
    shards: int
    """Number of searched shards; 0 if no index matches."""
    aggregations: Mapping[str, Any]
    server_time: datetime | None


class IndexClient:
    """Client of one cluster."""

    def __init__(
        self, tools: Tools, settings: ApiSettings, authorization: Mapping[str, str]
    ) -> None:
        """Store the dependencies. `authorization` is the header of each request, if any."""
        self._api = Api(tools, settings)
        self._authorization = authorization

    async def ask(
        self, method: str, path: str, *, json: Any = None, query: Mapping[str, Any] | None = None
    ) -> ApiResponse:
        """Send a request. Raises what `Api.request` raises."""
        return await self._api.request(
            method, path, json=json, query=query, headers=self._authorization
        )

    async def search(self, indices: str, body: Mapping[str, Any]) -> IndexSearchResult:
        """Run a search.

        Raises `TryLater` if not all shards answered in time: such responses have status 200, and
        hits are missing from them.
        """
        path = f"/{quote(indices, safe='*,-:')}/_search"
        # The cluster should fail instead of returning partial results
        whole = {"allow_partial_search_results": "false"}
        return parse_search(await self.ask("POST", path, json=body, query=whole), f"POST {path}")

    async def documents(self, indices: str, names: Sequence[str]) -> Sequence[dict[str, Any]]:
        """Return the documents with these IDs that exist. Raises as `search` does."""
        found: list[dict[str, Any]] = []
        for start in range(0, len(names), _DOCUMENTS_PER_REQUEST):
            some = list(names[start : start + _DOCUMENTS_PER_REQUEST])
            body = {"query": {"ids": {"values": some}}, "size": len(some)}
            found += (await self.search(indices, body)).hits
        return found


def parse_search(answer: ApiResponse, what: str) -> IndexSearchResult:
    """Parse the response of a search. Raises as `IndexClient.search` does."""
    match answer.json:
        case {
            "timed_out": bool(),
            "_shards": {"total": int(total), "successful": int(), "failed": int()},
            "hits": {"hits": list(hits)} as counted,
        } if all(isinstance(hit, dict) for hit in hits):
            if missing := _describe_missing(answer.json):
                raise TryLater(f"{what} returned partial results: {missing}")
            aggregations = answer.json.get("aggregations") or {}
            return IndexSearchResult(
                hits, _parse_total(counted, what), total, aggregations, answer.server_time
            )
    raise Broken(f"{what} did not return search results")


def _describe_missing(answer: dict[str, Any]) -> str | None:
    """Describe why a result is partial, or return None if it is complete.

    A shard that no node has is neither successful nor failed in OpenSearch, as in Elasticsearch
    before 7.11: https://github.com/elastic/elasticsearch/pull/64337.
    """
    if answer["timed_out"]:
        return "the search timed out"
    shards = answer["_shards"]
    if silent := max(shards["failed"], shards["total"] - shards["successful"]):
        return f"{silent} of {shards['total']} shards did not respond{_describe_failure(shards)}"
    match answer.get("_clusters"):
        case {"skipped": int(skipped)} if skipped:
            return f"{skipped} clusters were skipped"
    return None


def _parse_total(counted: Any, what: str) -> int:
    match counted.get("total"):
        case int(total) | {"value": int(total)}:
            return total
    raise Broken(f"{what} returned a response without `hits.total`")


def _describe_failure(shards: Any) -> str:
    match shards:
        case {"failures": [{"reason": {"reason": str(reason)}}, *_]}:
            return f": {' '.join(reason.split())[:_MAX_REASON_LENGTH]}"
    return ""


@dataclass(frozen=True, slots=True)
class DocumentCursor:
    """Position in a time-ordered search."""

    at: int
    """Timestamp of the last document, in milliseconds since 1970."""
    seen: tuple[str, ...]
    """IDs of the documents with that timestamp that were seen."""

    @classmethod
    def after(cls, hits: Sequence[Mapping[str, Any]], before: DocumentCursor | None) -> Self:
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
    field: str, size: int, *clauses: Any, cursor: DocumentCursor | None, newest_first: bool = False
) -> dict[str, Any]:
    """Return the search for the next page of documents that match all clauses."""
    order, bound = ("desc", "lte") if newest_first else ("asc", "gte")
    query: dict[str, Any] = {"filter": list(clauses)}
    if cursor is not None:
        query["filter"].append({"range": {field: {bound: cursor.at, "format": "epoch_millis"}}})
        query["must_not"] = [{"ids": {"values": list(cursor.seen)}}]
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
    cursor = None if token is None else DocumentCursor.decode(token)
    found = await logs.cluster.search(
        logs.indices, build_page_query(logs.field, limit, *clauses, cursor=cursor)
    )
    is_last = found.total <= len(found.hits)
    following = None if is_last else DocumentCursor.after(found.hits, cursor).encode()
    return Listing(records=found.hits, next_token=following, server_time=found.server_time), found


async def iterate_latest(
    logs: LogIndices, clause: Any, window: Window, limit: int
) -> AsyncGenerator[dict[str, Any], None]:
    """Yield the hits of a window that match a clause, latest first.

    Raises `TryLater` when the search limit is reached.
    """
    cursor, size, seen = None, min(limit + 1, MAX_PAGE_SIZE), 0
    clauses = build_time_query(logs.field, window), clause
    while True:
        body = build_page_query(logs.field, size, *clauses, cursor=cursor, newest_first=True)
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
        cursor = DocumentCursor.after(found.hits, cursor)


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
