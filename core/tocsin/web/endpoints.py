"""Every endpoint, on one page: routing, validation and the OpenAPI document come from here."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from tocsin.registry import PluginInventory
from tocsin.web.context import AccessRole, ApiServices, Endpoint, RequestContext, Response
from tocsin.web.openapi import OpenApiDocument, build
from tocsin.web.plugin_extensions import build_plugin_endpoints
from tocsin.web.routes import (
    accounting,
    api_clients,
    api_keys,
    audit,
    deliveries,
    destinations,
    enrichment,
    erasures,
    graph,
    incidents,
    investigations,
    oauth,
    plugins,
    providers,
    push,
    replays,
    schedules,
    search,
    service,
    sessions,
)
from tocsin.web.routes.docs import make_page


async def get_openapi(call: RequestContext) -> Response:
    """Answer the description of this API."""
    return Response(_document(*_find_key(call.services)))


def _find_key(services: ApiServices) -> tuple[str, str, PluginInventory | None]:
    inventory = services.inventory if services.inventory.routes else None
    return services.public_url, services.issuer_url, inventory


@lru_cache
def _document(
    public_url: str, issuer_url: str, inventory: PluginInventory | None
) -> dict[str, Any]:
    own = () if inventory is None else build_plugin_endpoints(inventory)
    return build((*ENDPOINTS, *own), public_url=public_url, issuer_url=issuer_url)


async def get_docs(call: RequestContext) -> Response:
    """Answer the description of this API as a page for people."""
    return _page(*_find_key(call.services))


@lru_cache
def _page(public_url: str, issuer_url: str, inventory: PluginInventory | None) -> Response:
    return make_page(_document(public_url, issuer_url, inventory))


ENDPOINTS = (
    *api_keys.ENDPOINTS,
    *api_clients.ENDPOINTS,
    *destinations.ENDPOINTS,
    *deliveries.ENDPOINTS,
    *replays.ENDPOINTS,
    *erasures.ENDPOINTS,
    *providers.ENDPOINTS,
    *plugins.ENDPOINTS,
    *schedules.ENDPOINTS,
    *audit.ENDPOINTS,
    *accounting.ENDPOINTS,
    *oauth.ENDPOINTS,
    *incidents.ENDPOINTS,
    *enrichment.ENDPOINTS,
    *sessions.ENDPOINTS,
    *investigations.ENDPOINTS,
    *search.ENDPOINTS,
    *graph.ENDPOINTS,
    *push.ENDPOINTS,
    *service.ENDPOINTS,
    Endpoint(
        method="GET",
        path="/openapi.json",
        access=AccessRole.PUBLIC,
        summary="Get the OpenAPI 3.1 description of this API",
        handler=get_openapi,
        response=OpenApiDocument,
    ),
    Endpoint(
        method="GET",
        path="/docs",
        access=AccessRole.PUBLIC,
        summary="Get the API reference as an HTML page",
        handler=get_docs,
        media_type="text/html",
    ),
)

_OF_THE_NODE = (service.get_health, service.get_readiness, service.get_metrics)
NODE_ENDPOINTS = tuple(endpoint for endpoint in ENDPOINTS if endpoint.handler in _OF_THE_NODE)
"""What a node answers that has no part in the API."""
