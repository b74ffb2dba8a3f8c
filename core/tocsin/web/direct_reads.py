"""Reads that one statement answers: it fetches the caller's key and what is stored of the response.

That is the usual request: an API key that was verified before, and documents that are up to date.
For any other, and for every refusal, the general handler of the endpoint reads again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from aiohttp import hdrs, web
from multidict import CIMultiDict
from sqlalchemy import ColumnElement, FromClause, bindparam, outerjoin, select

from tocsin.credentials import KEY_COLUMNS, PresentedKey
from tocsin.store import DriverQuery
from tocsin.store.tables import api_keys
from tocsin.web.authentication import API_KEY_HEADER, RATE_LIMIT_FIELDS
from tocsin.web.context import ApiServices, DirectAnswer, Endpoint
from tocsin.web.etags import CACHE_CONTROL, is_held

_ACCEPTED: tuple[list[str], ...] = ([], ["*/*"], ["application/json"])


def join_key(
    columns: Iterable[ColumnElement[Any]],
    source: FromClause,
    condition: ColumnElement[bool],
    names: Sequence[str],
) -> DriverQuery:
    """Return the query for a caller's key and the columns of a matching row, if there is one.

    `names` are the parameters of the source and the condition; the key id comes before them.
    """
    joined = outerjoin(api_keys, source, condition)
    query = select(*KEY_COLUMNS, *columns).select_from(joined)
    query = query.where(api_keys.c.key_id == bindparam("key_id"))
    return DriverQuery(query, ("key_id", *names))


class DirectRead:
    """Answers the usual request of an endpoint, and passes any other to its general handler."""

    def __init__(
        self,
        endpoint: Endpoint,
        services: ApiServices,
        read: Callable[[web.Request], Awaitable[web.StreamResponse]],
    ) -> None:
        self._endpoint = endpoint
        self._services = services
        self._keys = services.key_rows
        self._read = read

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Return the response to a request."""
        key = self._find_key(request)
        response = None if key is None else await self._answer(request, key)
        return await self._read(request) if response is None else response

    def _find_key(self, request: web.Request) -> PresentedKey | None:
        """Return the key that the request presents, None where that is not all it presents."""
        headers = request.headers
        keys = headers.getall(API_KEY_HEADER, ())
        if len(keys) != 1 or hdrs.AUTHORIZATION in headers:
            return None
        if headers.getall(hdrs.ACCEPT, []) not in _ACCEPTED:
            return None
        return self._keys.present(keys[0])

    async def _answer(self, request: web.Request, key: PresentedKey) -> web.Response | None:
        services, endpoint = self._services, self._endpoint
        assert endpoint.direct is not None  # noqa: S101 - as it is for every such endpoint
        wanted = endpoint.direct(request, services)
        if wanted is None:
            return None
        row = await services.database.fetch_row(wanted.query, (key.key_id, *wanted.values))
        if row is None:
            return None
        principal = self._keys.identify(key, row[: len(KEY_COLUMNS)])
        if principal is None or endpoint.access not in principal.scopes:
            return None
        answer = wanted.render(row[len(KEY_COLUMNS) :])
        if answer is None:
            return None
        request[RATE_LIMIT_FIELDS] = services.rate_limits.count_request(principal.id)
        return _respond(request, answer, services.tags.make(answer.version))


def _respond(request: web.Request, answer: DirectAnswer, tag: str) -> web.Response:
    headers = CIMultiDict(answer.headers)
    headers[hdrs.ETAG] = tag
    headers[hdrs.CACHE_CONTROL] = CACHE_CONTROL
    if is_held(request, tag):
        return web.Response(status=304, headers=headers)
    headers[hdrs.CONTENT_TYPE] = "application/json"
    return web.Response(body=answer.content, headers=headers)
