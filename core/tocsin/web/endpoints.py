"""Every endpoint, on one page: routing, validation and the OpenAPI document come from here."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import structlog

from tocsin.registry import PluginInventory
from tocsin.web.context import AccessRole, ApiServices, Endpoint, RequestContext, Response
from tocsin.web.openapi import OpenApiDocument, add_operations, build
from tocsin.web.plugin_extensions import build_plugin_endpoints
from tocsin.web.routes import (
    accounting,
    alerts,
    api_clients,
    api_keys,
    audit,
    console_sessions,
    deliveries,
    destination_tests,
    destinations,
    detections,
    enrichment,
    erasures,
    graph,
    incident_context,
    incidents,
    investigations,
    message_actions,
    oauth,
    people,
    plugins,
    providers,
    push,
    quarantine,
    replays,
    schedules,
    search,
    service,
    sessions,
    status_mismatches,
    suppressions,
    ticket_events,
    triage,
)
from tocsin.web.routes.docs import make_page

_log = structlog.get_logger()


async def get_openapi(call: RequestContext) -> Response:
    """Return the OpenAPI document of this API."""
    return Response(_document(*_find_key(call.services)))


def _find_key(services: ApiServices) -> tuple[str, str, PluginInventory | None]:
    inventory = services.inventory if services.inventory.routes else None
    return services.public_url, services.issuer_url, inventory


@lru_cache
def _document(
    public_url: str, issuer_url: str, inventory: PluginInventory | None
) -> dict[str, Any]:
    document = build(ENDPOINTS, public_url=public_url, issuer_url=issuer_url)
    if inventory is None:
        return document
    for plugin in inventory.routes:
        try:
            own = build_plugin_endpoints(inventory, plugin)
            add_operations(
                document, build(own, public_url=public_url, issuer_url=issuer_url), plugin
            )
        except Exception as error:  # noqa: BLE001 - its routes are not described
            _log.error("routes of a plugin not described", plugin=plugin, exc_info=error)
    return document


async def get_docs(call: RequestContext) -> Response:
    """Return the API reference as an HTML page."""
    return _page(*_find_key(call.services))


@lru_cache
def _page(public_url: str, issuer_url: str, inventory: PluginInventory | None) -> Response:
    return make_page(_document(public_url, issuer_url, inventory))


ENDPOINTS = (
    *api_keys.ENDPOINTS,
    *api_clients.ENDPOINTS,
    *console_sessions.ENDPOINTS,
    *people.ENDPOINTS,
    *destinations.ENDPOINTS,
    *destination_tests.ENDPOINTS,
    *deliveries.ENDPOINTS,
    *replays.ENDPOINTS,
    *suppressions.ENDPOINTS,
    *erasures.ENDPOINTS,
    *providers.ENDPOINTS,
    *quarantine.ENDPOINTS,
    *plugins.ENDPOINTS,
    *schedules.ENDPOINTS,
    *audit.ENDPOINTS,
    *accounting.ENDPOINTS,
    *oauth.ENDPOINTS,
    *incidents.ENDPOINTS,
    *incident_context.ENDPOINTS,
    *alerts.ENDPOINTS,
    *detections.ENDPOINTS,
    *triage.ENDPOINTS,
    *status_mismatches.ENDPOINTS,
    *enrichment.ENDPOINTS,
    *sessions.ENDPOINTS,
    *investigations.ENDPOINTS,
    *search.ENDPOINTS,
    *graph.ENDPOINTS,
    *push.ENDPOINTS,
    *ticket_events.ENDPOINTS,
    *message_actions.ENDPOINTS,
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
"""Endpoints of a node without the API role."""
