"""Client of an OpenSearch or Elasticsearch cluster, and its settings.

A search counts only if every shard has answered.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self
from urllib.parse import quote

from pydantic import Field, SecretStr, model_validator
from pydantic_core import PydanticCustomError

from tocsin import Api, ApiResponse, ApiSettings, Broken, Tools, TryLater


class ClusterSettings(ApiSettings):
    """Settings of a cluster with user or token authentication."""

    username: str | None = Field(default=None, min_length=1, description="User to sign in as.")
    password: SecretStr | None = Field(default=None, description="Password of the user.")
    token: SecretStr | None = Field(
        default=None, description="Bearer token (JWT), instead of user and password."
    )

    @model_validator(mode="after")
    def _check_credentials(self) -> Self:
        is_pair = (self.username is None) is (self.password is None)
        if not is_pair or not (self.username or self.token or self.client_certificate):
            raise PydanticCustomError(
                "credentials", "set `username` and `password`, `token`, or `client_certificate`"
            )
        return self

    @property
    def authorization(self) -> dict[str, str]:
        """Authorization header, none if a client certificate is used alone."""
        if self.token is not None:
            return {"Authorization": f"Bearer {self.token.get_secret_value()}"}
        if self.username is None or self.password is None:
            return {}
        pair = f"{self.username}:{self.password.get_secret_value()}"
        return {"Authorization": f"Basic {b64encode(pair.encode()).decode()}"}


MAX_HITS = 10_000
"""Default of `index.max_result_window`."""
_DOCUMENTS_PER_REQUEST = 100
"""Documents per request: responses are limited, and documents may be long."""
_MAX_REASON_LENGTH = 200


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
    raise Broken(f"{what} did not return what a search finds")


def _describe_missing(answer: dict[str, Any]) -> str | None:
    """Describe why a result is partial, or return None if it is complete.

    A shard that no node has is neither successful nor failed in OpenSearch, as in Elasticsearch
    before 7.11: https://github.com/elastic/elasticsearch/pull/64337.
    """
    if answer["timed_out"]:
        return "the search timed out"
    shards = answer["_shards"]
    if silent := max(shards["failed"], shards["total"] - shards["successful"]):
        return f"{silent} of {shards['total']} shards did not answer{_describe_failure(shards)}"
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
