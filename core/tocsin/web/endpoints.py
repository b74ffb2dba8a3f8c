"""Every endpoint, on one page: routing, validation and the OpenAPI document come from here."""

from __future__ import annotations

from functools import cache
from typing import Any

from tocsin.credentials import Scope
from tocsin.web.calls import Answer, Call, Endpoint, Role
from tocsin.web.openapi import OpenApi, build
from tocsin.web.routes import api_clients, api_keys, audit, incidents, oauth, service
from tocsin.web.routes.docs import make_page


async def get_openapi(call: Call) -> Answer:
    """Answer the description of this API."""
    return Answer(_document(call.services.public_url, call.services.issuer_url))


@cache
def _document(public_url: str, issuer_url: str) -> dict[str, Any]:
    return build(ENDPOINTS, public_url=public_url, issuer_url=issuer_url)


async def get_docs(call: Call) -> Answer:
    """Answer the description of this API as a page for people."""
    return _page(call.services.public_url, call.services.issuer_url)


@cache
def _page(public_url: str, issuer_url: str) -> Answer:
    return make_page(_document(public_url, issuer_url))


_KEYS = "/api/admin/api-keys"
_KEY = f"{_KEYS}/{{key_id}}"
_CLIENTS = "/api/admin/api-clients"
_CLIENT = f"{_CLIENTS}/{{client_id}}"

ENDPOINTS = (
    Endpoint(
        method="POST",
        path=_KEYS,
        access=Role.ADMIN,
        summary="Create an API key; its value is shown this once",
        handler=api_keys.create_api_key,
        prepare=api_keys.mint_key,
        body=api_keys.NewApiKey,
        answer=api_keys.CreatedApiKey,
        action="api-key.create",
        idempotent=True,
        shows_secret=True,
        status=201,
    ),
    Endpoint(
        method="GET",
        path=_KEYS,
        access=Role.ADMIN,
        summary="List API keys, the newest first",
        handler=api_keys.list_keys,
        query=api_keys.ApiKeyQuery,
        answer=api_keys.ApiKeyList,
    ),
    Endpoint(
        method="GET",
        path=_KEY,
        access=Role.ADMIN,
        summary="Read one API key",
        handler=api_keys.get_api_key,
        is_brief=True,
        answer=api_keys.ApiKeyItem,
        errors=(404,),
    ),
    Endpoint(
        method="POST",
        path=f"{_KEY}/rotate",
        access=Role.ADMIN,
        summary="Give an API key a new value, which is shown this once",
        handler=api_keys.rotate_key,
        prepare=api_keys.mint_value,
        body=api_keys.Rotation,
        body_required=False,
        answer=api_keys.RotatedApiKey,
        action="api-key.rotate",
        idempotent=True,
        shows_secret=True,
        errors=(404, 409),
    ),
    Endpoint(
        method="DELETE",
        path=_KEY,
        access=Role.ADMIN,
        summary="Disable an API key for good",
        handler=api_keys.disable_key,
        answer=api_keys.ApiKeyItem,
        action="api-key.disable",
        errors=(404,),
    ),
    Endpoint(
        method="POST",
        path=_CLIENTS,
        access=Role.ADMIN,
        summary="Create an API client; its secret is shown this once",
        handler=api_clients.create_api_client,
        prepare=api_clients.mint_client,
        body=api_clients.NewApiClient,
        answer=api_clients.CreatedApiClient,
        action="api-client.create",
        idempotent=True,
        shows_secret=True,
        status=201,
    ),
    Endpoint(
        method="GET",
        path=_CLIENTS,
        access=Role.ADMIN,
        summary="List API clients, the newest first",
        handler=api_clients.list_clients,
        query=api_clients.ApiClientQuery,
        answer=api_clients.ApiClientList,
    ),
    Endpoint(
        method="GET",
        path=_CLIENT,
        access=Role.ADMIN,
        summary="Read one API client",
        handler=api_clients.get_api_client,
        is_brief=True,
        answer=api_clients.ApiClientItem,
        errors=(404,),
    ),
    Endpoint(
        method="POST",
        path=f"{_CLIENT}/regenerate-secret",
        access=Role.ADMIN,
        summary="Give an API client a new secret, which is shown this once; the old one ends",
        handler=api_clients.regenerate_client_secret,
        prepare=api_clients.mint_secret,
        answer=api_clients.RegeneratedSecret,
        action="api-client.regenerate-secret",
        idempotent=True,
        shows_secret=True,
        errors=(404, 409),
    ),
    Endpoint(
        method="POST",
        path=f"{_CLIENT}/revoke-tokens",
        access=Role.ADMIN,
        summary="End every token that an API client was issued",
        handler=api_clients.revoke_client_tokens,
        answer=api_clients.ApiClientItem,
        action="api-client.revoke-tokens",
        errors=(404,),
    ),
    Endpoint(
        method="DELETE",
        path=_CLIENT,
        access=Role.ADMIN,
        summary="Disable an API client for good; its tokens live until they expire",
        handler=api_clients.disable_client,
        answer=api_clients.ApiClientItem,
        action="api-client.disable",
        errors=(404,),
    ),
    Endpoint(
        method="GET",
        path="/api/admin/audit",
        access=Role.ADMIN,
        summary="List what admins did and how often callers were refused, the newest first",
        handler=audit.list_audit,
        query=audit.AuditQuery,
        answer=audit.AuditList,
    ),
    Endpoint(
        method="POST",
        path=oauth.TOKEN_PATH,
        access=Role.CLIENT,
        summary="Obtain an access token",
        handler=oauth.issue_token,
        prepare=oauth.judge_token_request,
        body=oauth.TokenRequest,
        answer=oauth.TokenAnswer,
    ),
    Endpoint(
        method="POST",
        path=oauth.INTROSPECTION_PATH,
        access=Role.CLIENT,
        summary="Say what one of the client's own tokens is worth",
        handler=oauth.introspect_token,
        is_brief=True,
        prepare=oauth.judge_token,
        body=oauth.PresentedToken,
        answer=oauth.Introspection,
    ),
    Endpoint(
        method="POST",
        path=oauth.REVOCATION_PATH,
        access=Role.CLIENT,
        summary="End one of the client's own tokens at once",
        handler=oauth.revoke_presented_token,
        prepare=oauth.judge_token,
        body=oauth.PresentedToken,
        answer=oauth.Revoked,
    ),
    Endpoint(
        method="GET",
        path=oauth.JWKS_PATH,
        access=Role.PUBLIC,
        summary="Publish the keys that verify access tokens",
        handler=oauth.get_key_set,
        answer=oauth.KeySet,
        errors=(503,),
    ),
    Endpoint(
        method="GET",
        path=oauth.METADATA_PATH,
        access=Role.PUBLIC,
        summary="Describe the token endpoint (RFC 8414)",
        handler=oauth.get_metadata,
        answer=oauth.Metadata,
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
        is_brief=True,
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
    Endpoint(
        method="GET",
        path="/docs",
        access=Role.PUBLIC,
        summary="Describe this API for people",
        handler=get_docs,
        media_type="text/html",
    ),
)
