"""Simulator of a search cluster: the part of the query language that the providers use."""

from __future__ import annotations

from abc import abstractmethod
from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from aiohttp import web

from tocsin import Window
from tocsin.testing import ErrorResponse, Fault, Simulator

from .aggregations import composite
from .query import is_let_by, moments, stamp

EVER = Window(datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC))
MAX_RESULT_WINDOW = 10_000


@dataclass(frozen=True)
class Document:
    """What an index holds: as it is searched, and as it is shown, which may be nonsense."""

    index: str
    id: str
    source: dict[str, Any]
    shown: dict[str, Any]
    at: datetime
    poisoned: bool = False


class IndexSimulator(Simulator):
    """Indices; say what documents there are."""

    user: ClassVar = {"username": "tocsin", "password": "a secret"}
    time_field: ClassVar = "@timestamp"

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.shards = {"total": 3, "successful": 3, "skipped": 0, "failed": 0}
        self.timed_out = False
        self.skipped_clusters = 0
        self.lacks: set[str] = set()
        """The permissions that the role of the user lacks."""
        self.searches: list[dict[str, Any]] = []

    def routes(self) -> list[web.RouteDef]:
        return [web.post("/{indices}/_search", self.search)]

    def is_signed(self, request: web.Request) -> bool:
        pair = ":".join(self.user.values()).encode()
        return request.headers.get("Authorization") == f"Basic {b64encode(pair).decode()}"

    @abstractmethod
    def documents(self, window: Window, indices: str = "") -> Iterator[Document]:
        """Yield the documents of some indices that are stamped in a window, in any order."""

    def need(self, permission: str) -> None:
        """Refuse as OpenSearch does where the role of the user lacks a permission."""
        if permission in self.lacks:
            raise ErrorResponse(403, f"no permissions for [{permission}] and User [name=tocsin]")

    async def search(self, request: web.Request) -> web.Response:
        self.need("indices:data/read/search")
        body = await request.json()
        self.searches.append(body)
        if request.query.get("allow_partial_search_results") == "false" and self._is_in_part():
            raise ErrorResponse(503, "Search rejected due to missing shards")
        size, order = body.get("size", 10), self._order(body)
        if size + body.get("from", 0) > MAX_RESULT_WINDOW:
            raise ErrorResponse(400, f"Result window is too large: {MAX_RESULT_WINDOW}")
        found = sorted(
            self._matching(body.get("query", {"match_all": {}}), request.match_info["indices"]),
            key=lambda item: (stamp(item.at), item.id),
            reverse=order == "desc",
        )
        hits = found[: min(size, self.most_per_page)]
        if any(document.poisoned for document in hits):
            raise ErrorResponse(500, "a document cannot be shown")
        if size and self._takes(Fault.PARTIAL):
            hits = hits[: len(hits) // 2]
        return self.json(
            {
                "took": 3,
                "timed_out": self.timed_out,
                "_shards": self.shards,
                "_clusters": {"total": 2, "successful": 2, "skipped": self.skipped_clusters},
                "hits": {
                    **self._total(len(found), body.get("track_total_hits", MAX_RESULT_WINDOW)),
                    "max_score": None,
                    "hits": [self._hit(document, order) for document in hits],
                },
                **self._aggregations(found, body.get("aggs", {})),
            }
        )

    def _is_in_part(self) -> bool:
        return self.shards["successful"] < self.shards["total"]

    def _matching(self, query: dict[str, Any], indices: str) -> Iterator[Document]:
        start, end = moments(query, self.time_field)
        window = Window(start or EVER.start, end or EVER.end)
        for document in self.documents(window, indices):
            if is_let_by(query, document.source, document.id):
                yield document

    def _order(self, body: dict[str, Any]) -> str | None:
        for field in body.get("sort", []):
            [(name, how)] = field.items()
            assert name == self.time_field
            return how["order"] if isinstance(how, dict) else how
        return None

    @staticmethod
    def _total(count: int, most: int | bool) -> dict[str, Any]:
        if most is False:
            return {}
        if most is True or count <= most:
            return {"total": {"value": count, "relation": "eq"}}
        return {"total": {"value": most, "relation": "gte"}}

    def shown(self, document: Document) -> dict[str, Any]:
        """Return what is shown of a document that was found."""
        return document.shown

    def _hit(self, document: Document, order: str | None) -> dict[str, Any]:
        hit = {"_index": document.index, "_id": document.id, "_source": self.shown(document)}
        return {**hit, "_score": None, "sort": [stamp(document.at)]} if order else hit

    def _aggregations(self, found: list[Document], asked: Mapping[str, Any]) -> dict[str, Any]:
        if not asked:
            return {}
        told = [(document.at, document.id, document.source, document.shown) for document in found]
        return {"aggregations": composite(told, asked, self.time_field)}


def short(moment: datetime) -> str:
    """Return a time as clusters keep it: to the millisecond."""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def behind(window: Window) -> Window:
    """Return a window with the whole of the millisecond in which it begins."""
    start = window.start - timedelta(microseconds=window.start.microsecond % 1000)
    return Window(start, window.end)
