"""The API as an aiohttp application."""

from __future__ import annotations

from collections import defaultdict

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler

from tocsin import tracing
from tocsin.web.authentication import AccessControl
from tocsin.web.console import add_console
from tocsin.web.context import REQUEST_ID_KEY, AccessRole, ApiServices
from tocsin.web.direct_reads import DirectReads
from tocsin.web.dispatch import HttpHandler, make_handler
from tocsin.web.endpoints import ENDPOINTS, NODE_ENDPOINTS
from tocsin.web.envelope import UNTRACED, HostCheck, ResponseHeaders, describe_path, make_envelope
from tocsin.web.oauth_endpoint import OAuthEndpoint
from tocsin.web.plugin_extensions import build_plugin_endpoints
from tocsin.web.problems import BODY_LIMIT

HEADERS = web.AppKey("headers", ResponseHeaders)
"""Key of an application's response headers."""
DIRECT_READS = web.AppKey("direct_reads", DirectReads)
"""Key of the reads that are answered before a request reaches the application."""


def make_app(services: ApiServices, *, has_api: bool = True) -> web.Application:
    """Return the application; the caller closes the services.

    Without the API, the application serves only the health and the metrics of the node.
    """
    https = services.public_url.startswith("https://")
    headers = ResponseHeaders(https=https, cors_origins=services.cors_origins)
    hosts = HostCheck(
        services.public_url,
        services.issuer_url,
        has_metrics_token=lambda: services.metrics_token is not None,
    )
    app = web.Application(client_max_size=BODY_LIMIT)
    app[HEADERS] = headers
    access_control = AccessControl(services)
    handlers: dict[str, dict[str, HttpHandler]] = defaultdict(dict)
    inventory = services.inventory
    own = [one for name in inventory.routes for one in build_plugin_endpoints(inventory, name)]
    endpoints = (*ENDPOINTS, *own) if has_api else NODE_ENDPOINTS
    app[DIRECT_READS] = DirectReads(endpoints, services, hosts, headers.plain)
    for endpoint in endpoints:
        if endpoint.access is AccessRole.CLIENT:
            handler: HttpHandler = OAuthEndpoint(endpoint, services, access_control).handle
        else:
            handler = make_handler(endpoint, services, access_control)
        handlers[endpoint.path][endpoint.method] = handler
        if endpoint.method == "GET":
            handlers[endpoint.path]["HEAD"] = handler
    for path, by_method in handlers.items():
        resource = app.router.add_resource(path)
        for method, handler in by_method.items():
            resource.add_route(method, handler)
        allowed = {"OPTIONS", *by_method}
        resource.add_route("OPTIONS", _make_options_handler(headers, allowed))
    render_missing = add_console(app, services, access_control) if has_api else None
    if tracing.is_on():
        app.middlewares.append(_trace_request)
    app.middlewares.append(make_envelope(services, hosts, headers, render_missing))
    return app


@web.middleware
async def _trace_request(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Record a span of a request, as part of the caller's trace, if there is one."""
    if request.path in UNTRACED:
        return await handler(request)
    method = request.method if request.method in hdrs.METH_ALL else "_OTHER"
    route = describe_path(request)
    facts = {"http.request.method": method, "http.route": route}
    parent = request.headers.get(tracing.TRACEPARENT)
    with tracing.span(f"{method} {route}", facts, kind="server", parent=parent) as traced:
        response = await handler(request)
        traced.set({"http.response.status_code": response.status})
        traced.set({"request_id": request[REQUEST_ID_KEY]})
    return response


def _make_options_handler(headers: ResponseHeaders, methods: set[str]) -> Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        return headers.options(request, methods)

    return handle
