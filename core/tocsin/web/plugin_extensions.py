"""API routes and console pages of plugins, which fail without effect on others."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from inspect import getdoc
from typing import Any, TypeVar

import structlog
from pydantic import BaseModel

from tocsin.credentials import Scope
from tocsin.errors import RequestError
from tocsin.hookspecs import ConsoleSection, ExtensionRequest, Route
from tocsin.loops import PLUGIN_FAILURES, was_cancelled
from tocsin.plugin_results import require_items, require_kind, require_result
from tocsin.registry import PluginInventory
from tocsin.web.context import AccessRole, ApiServices, Endpoint, RequestContext, Response
from tocsin.web.parsing import BodyModel, QueryModel, parse_body
from tocsin.web.problems import PATH_NOT_FOUND, ProblemKind, ProblemType

PLUGIN_FAILED = ProblemType(
    "plugin-failed",
    500,
    "The plugin {plugin} failed; the service log contains the details under this X-Request-Id.",
    kind=ProblemKind.PLUGIN_FAILED,
    example={"plugin": "acme"},
    path="/api/plugins/acme/lists",
)
_SECONDS = 30
T = TypeVar("T")
_log = structlog.get_logger()


def build_plugin_endpoints(inventory: PluginInventory, plugin: str) -> tuple[Endpoint, ...]:
    """Return the endpoints of a plugin."""
    return tuple(_build_endpoint(plugin, route) for route in inventory.routes[plugin])


def _build_endpoint(plugin: str, route: Route) -> Endpoint:
    words = re.sub(r"\W+", "_", f"{route.method.lower()} {plugin} {route.path}").strip("_")
    body = _derive(route.body, BodyModel) if route.body else None

    async def serve(call: RequestContext) -> Response:
        require_enabled(call.services, plugin)
        parsed = await parse_body(call.request, body) if body else None
        request = ExtensionRequest(
            caller=call.principal.id,
            path=dict(call.path),
            query=call.query,
            body=parsed,
            objects=call.services.node.find_objects(plugin),
        )
        result = await call_plugin(plugin, route.handler, request)
        made = guard(plugin, lambda: require_kind(result, route.response, route.handler))
        return Response(guard(plugin, lambda: made.model_dump(mode="json")))

    serve.__name__ = words
    serve.__doc__ = getdoc(route.handler) or f"{route.summary}."
    return Endpoint(
        method=route.method,
        path=f"/api/plugins/{plugin}{route.path}",
        access=AccessRole.ADMIN if route.access == "admin" else Scope(route.access),
        summary=route.summary,
        handler=serve,
        response=route.response,
        query=_derive(route.query, QueryModel) if route.query else QueryModel,
        body=body,
        problems=(PLUGIN_FAILED,),
    )


def _derive(model: type[BaseModel], base: type[BaseModel]) -> Any:
    """Return a model that follows the API's rules, such as rejecting unknown members."""
    members = {"__module__": model.__module__, "__doc__": model.__doc__}
    return type(f"{model.__name__}{base.__name__.removesuffix('Model')}", (model, base), members)


def require_enabled(services: ApiServices, plugin: str) -> None:
    """Raise ProblemError (404) if a reload has disabled the plugin since the node started."""
    if plugin not in services.inventory.loaded:
        raise PATH_NOT_FOUND.error()


async def call_plugin(
    plugin: str, function: Callable[[ExtensionRequest], Awaitable[T]], request: ExtensionRequest
) -> T:
    """Return the result of a plugin's function; on failure, raise an error with its name."""
    try:
        async with asyncio.timeout(_SECONDS):
            return await function(request)
    except RequestError:
        raise
    except PLUGIN_FAILURES as error:
        if was_cancelled():
            raise
        raise _fail(plugin, error) from None


def guard(plugin: str, check: Callable[[], T]) -> T:
    """Return the result of a check; on failure, raise an error that names the plugin."""
    try:
        return check()
    except Exception as error:  # noqa: BLE001 - a wrong result costs only this request
        raise _fail(plugin, error) from None


def _fail(plugin: str, error: BaseException) -> Exception:
    _log.error("plugin failed to serve a request", plugin=plugin, exc_info=error)
    return PLUGIN_FAILED.error(plugin=plugin)


def check_sections(
    sections: object, method: Callable[..., object]
) -> Sequence[Mapping[str, object]]:
    """Return the page's template context; raises TypeError if `sections` are not sections."""
    return [
        {
            "heading": section.heading,
            "text": section.text,
            "columns": [str(column) for column in section.columns],
            "rows": [[str(cell) for cell in row] for row in section.rows],
        }
        for one in require_items(sections, method)
        for section in [require_result(one, ConsoleSection, method)]
    ]
