"""Request for a page: access to the API endpoints, filters and periods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from inspect import iscoroutinefunction
from typing import Any, cast

from aiohttp import web
from pydantic import BaseModel, ValidationError

from tocsin.store import ReadReplica, load_freshness
from tocsin.web.console.forms import to_utc
from tocsin.web.console.sessions import SignedInUser
from tocsin.web.context import (
    ApiServices,
    AsyncHandler,
    Endpoint,
    RequestContext,
    Response,
    TransactionHandler,
)
from tocsin.web.endpoints import ENDPOINTS
from tocsin.web.parsing import invalid_request, list_field_errors
from tocsin.web.problems import ProblemError

_BY_HANDLER = {endpoint.handler: endpoint for endpoint in ENDPOINTS}


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRequest:
    """A request for a page, which gives access to the API endpoints."""

    services: ApiServices
    user: SignedInUser
    http: web.Request
    is_shared: bool = False
    """Whether all users share the result, which must contain the latest writes of all users."""
    ages: list[float] = field(default_factory=list)
    """The maximum lag of each response from a replica, in seconds."""

    @property
    def path(self) -> Mapping[str, str]:
        """Path parameters of the page."""
        return self.http.match_info

    @property
    def query(self) -> Mapping[str, str]:
        """Query parameters of the page that are not empty."""
        return {name: value for name, value in self.http.query.items() if value}

    async def ask(
        self,
        handler: TransactionHandler | AsyncHandler,
        path: Mapping[str, str] | None = None,
        /,
        **query: str,
    ) -> Any:
        """Return the response of the endpoint with this handler; raises ProblemError.

        `path` contains the path parameters of the endpoint (default: those of the page), `query`
        its query parameters.
        """
        return (await self.answer(handler, path, **query)).content

    async def answer(
        self,
        handler: TransactionHandler | AsyncHandler,
        path: Mapping[str, str] | None = None,
        /,
        **query: str,
    ) -> Response:
        """Return the response of the endpoint with its version, like `ask`."""
        endpoint = find_endpoint(handler)
        self.user.require(endpoint.console_role)
        call = self.call(endpoint, self.path if path is None else path, query)
        if iscoroutinefunction(handler):
            return await cast("AsyncHandler", handler)(call)
        if endpoint.may_lag and self.services.replica is not None:
            return await self._read_replica(
                self.services.replica, cast("TransactionHandler", handler), call
            )
        read = self.services.database.lookup if endpoint.is_brief else self.services.database.read
        return await read(cast("TransactionHandler", handler), call)

    async def _read_replica(
        self, replica: ReadReplica, handler: TransactionHandler, call: RequestContext
    ) -> Response:
        caller = None if self.is_shared else self.user.principal.id
        freshness = await self.services.database.lookup(load_freshness, caller)
        answer, age = await replica.read(freshness, lambda connection: handler(connection, call))
        if age is not None:
            self.ages.append(age)
        return answer

    def call(
        self,
        endpoint: Endpoint,
        path: Mapping[str, str],
        query: Mapping[str, str],
        *,
        body: BaseModel | None = None,
        expected_tag: str | None = None,
    ) -> RequestContext:
        """Return the context of an endpoint call by the user; raises ProblemError (404, 422)."""
        if not all(part.isprintable() for part in path.values()):
            raise ProblemError(404, "There is no page at this address.")
        try:
            parsed = endpoint.query.model_validate(query)
        except ValidationError as error:
            raise invalid_request("filters", list_field_errors(error, endpoint.query)) from None
        return RequestContext(
            services=self.services,
            principal=self.user.principal,
            request=self.http,
            path=path,
            query=parsed,
            body=body,
            expected_tag=expected_tag,
        )


def find_endpoint(handler: TransactionHandler | AsyncHandler) -> Endpoint:
    """Return the endpoint of a handler."""
    return _BY_HANDLER[handler]


MOMENTS = ("since", "until")
"""Query parameters of a period."""


def select_query(request: PageRequest, *names: str) -> dict[str, str]:
    """Return the given query parameters."""
    return {name: request.query[name] for name in names if name in request.query}


def select_period(request: PageRequest) -> dict[str, str]:
    """Return the given ends of the period in UTC."""
    return {name: to_utc(text) for name, text in select_query(request, *MOMENTS).items()}
