"""Every endpoint, on one page: routing, validation and the OpenAPI document come from here."""

from __future__ import annotations

from functools import cache
from typing import Any

from tocsin.credentials import Scope
from tocsin.web.calls import Answer, Call, Endpoint, Role
from tocsin.web.openapi import OpenApi, build
from tocsin.web.routes import api_keys, incidents, service


async def get_openapi(call: Call) -> Answer:
    """Answer the description of this API."""
    return Answer(_document(call.services.public_url))


@cache
def _document(public_url: str) -> dict[str, Any]:
    return build(ENDPOINTS, public_url)


ENDPOINTS = (
    Endpoint(
        method="POST",
        path="/api/admin/api-keys",
        access=Role.ADMIN,
        summary="Create an API key; its value is shown this once",
        handler=api_keys.create_api_key,
        body=api_keys.NewApiKey,
        answer=api_keys.CreatedApiKey,
        status=201,
    ),
    Endpoint(
        method="GET",
        path="/api/v1/incidents",
        access=Scope.INCIDENTS_READ,
        summary="List synced incidents, the most recently changed first",
        handler=incidents.list_incidents,
        query=incidents.IncidentQuery,
        answer=incidents.IncidentList,
    ),
    Endpoint(
        method="GET",
        path="/api/v1/incidents/{number}",
        access=Scope.INCIDENTS_READ,
        summary="Read one incident",
        handler=incidents.get_incident,
        answer=incidents.Incident,
        errors=(404,),
    ),
    Endpoint(
        method="GET",
        path="/healthz",
        access=Role.PUBLIC,
        summary="Say that the process is alive",
        handler=service.get_health,
        answer=service.Health,
    ),
    Endpoint(
        method="GET",
        path="/readyz",
        access=Role.PUBLIC,
        summary="Say whether the database, its schema and the node's roles are ready",
        handler=service.get_readiness,
        answer=service.Readiness,
        other_statuses=(503,),
    ),
    Endpoint(
        method="GET",
        path="/openapi.json",
        access=Role.PUBLIC,
        summary="Describe this API (OpenAPI 3.1)",
        handler=get_openapi,
        answer=OpenApi,
    ),
)
