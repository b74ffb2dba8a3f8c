"""Request for a page: access to the API endpoints, filters and periods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from inspect import iscoroutinefunction
from typing import Any, cast

from aiohttp import web
from pydantic import BaseModel, ValidationError

from tocsin.errors import CallerError
from tocsin.web.console.forms import to_field, to_utc
from tocsin.web.console.sessions import SignedInUser
from tocsin.web.context import (
    ApiServices,
    AsyncHandler,
    Endpoint,
    RequestContext,
    TransactionHandler,
)
from tocsin.web.endpoints import ENDPOINTS
from tocsin.web.parsing import invalid_request, list_field_errors

_BY_HANDLER = {endpoint.handler: endpoint for endpoint in ENDPOINTS}


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRequest:
    """One request for a page, and what it may ask."""

    services: ApiServices
    visitor: SignedInUser
    request: web.Request

    @property
    def path(self) -> Mapping[str, str]:
        """The parts of the page's path that have a name."""
        return self.request.match_info

    @property
    def query(self) -> Mapping[str, str]:
        """What stands in the page's query; a field in which nothing stands was left out."""
        return {name: value for name, value in self.request.query.items() if value}

    async def ask(
        self,
        handler: TransactionHandler | AsyncHandler,
        path: Mapping[str, str] | None = None,
        /,
        **query: str,
    ) -> Any:
        """Return what the endpoint with this handler answers; CallerError (404, 422 and so on).

        `path` are the parts of the endpoint's path, those of the page's unless given; `query` its
        query parameters.
        """
        endpoint = find_endpoint(handler)
        call = self.call(endpoint, self.path if path is None else path, query)
        if iscoroutinefunction(handler):
            return (await cast("AsyncHandler", handler)(call)).content
        read = self.services.database.lookup if endpoint.is_brief else self.services.database.read
        return (await read(cast("TransactionHandler", handler), call)).content

    def call(
        self,
        endpoint: Endpoint,
        path: Mapping[str, str],
        query: Mapping[str, str],
        *,
        body: BaseModel | None = None,
    ) -> RequestContext:
        """Return a call of the endpoint by whoever looks at the page; CallerError (404, 422)."""
        if not all(part.isprintable() for part in path.values()):
            raise CallerError(404, "There is nothing at this path.")
        try:
            parsed = endpoint.query.model_validate(query)
        except ValidationError as error:
            raise invalid_request("filters", list_field_errors(error, endpoint.query)) from None
        return RequestContext(
            services=self.services,
            principal=self.visitor.principal,
            request=self.request,
            path=path,
            query=parsed,
            body=body,
        )


def find_endpoint(handler: TransactionHandler | AsyncHandler) -> Endpoint:
    """Return the endpoint that has this handler."""
    return _BY_HANDLER[handler]


MOMENTS = ("since", "until")
"""The query's parameters that a period begins and ends by."""


def select_query(reading: PageRequest, *names: str) -> dict[str, str]:
    """Return those of the query's parameters that are given."""
    return {name: reading.query[name] for name in names if name in reading.query}


def select_period(reading: PageRequest) -> dict[str, str]:
    """Return those ends of the period that are given, in UTC."""
    return {name: to_utc(text) for name, text in select_query(reading, *MOMENTS).items()}


def format_period_fields(query: Mapping[str, str]) -> dict[str, str]:
    """Return both ends of a period as fields have them, empty where they are not given."""
    return {name: to_field(query.get(name, "")) for name in MOMENTS}
