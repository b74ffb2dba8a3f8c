"""Endpoints for API clients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row
from ulid import ULID

from tocsin import credentials
from tocsin.clock import isoformat, isoformat_or_none
from tocsin.credentials import (
    ApiClient,
    generate_client_id,
    generate_client_secret,
    load_api_client,
    regenerate_secret,
    revoke_tokens,
    to_api_client,
)
from tocsin.model import Json
from tocsin.web.context import AccessRole, AuditedChange, Endpoint, RequestContext, Response
from tocsin.web.record_problems import API_CLIENT_NOT_FOUND, CLIENT_NOT_ACTIVE
from tocsin.web.routes.credential_records import (
    NO_STORE,
    parse_scopes,
    record_page_response,
    translate_record_errors,
)
from tocsin.web.routes.oauth import TOKEN_PATH
from tocsin.web.schemas.api_clients import (
    LIST,
    ApiClientItem,
    ApiClientList,
    ApiClientQuery,
    CreatedApiClient,
    NewApiClient,
    RegeneratedSecret,
)


@dataclass(frozen=True, slots=True)
class MintedSecret:
    """A new secret and its stored hash."""

    text: str
    hash: str


async def mint_client(call: RequestContext) -> MintedSecret:
    """Generate the secret of a new client."""
    parse_scopes(call.body.scopes)
    return await _mint(call)


async def mint_secret(call: RequestContext) -> MintedSecret:
    """Generate a new secret for the client in the path."""
    await call.services.database.read(_find, call)
    return await _mint(call)


async def _mint(call: RequestContext) -> MintedSecret:
    secret = generate_client_secret()
    return MintedSecret(secret, await call.services.hasher.hash(secret))


def create_api_client(connection: Connection, call: RequestContext) -> Response:
    """Create an API client and return its secret."""
    body: NewApiClient = call.body
    minted: MintedSecret = call.prepared
    now = call.services.clock.now()
    client = ApiClient(
        id=str(ULID.from_datetime(now)),
        client_id=generate_client_id(),
        name=body.name,
        description=body.description,
        scopes=parse_scopes(body.scopes),
        secret_hash=minted.hash,
        created_by=call.principal.name,
        created_at=now,
        updated_at=now,
    )
    credentials.create_api_client(connection, client)
    content: dict[str, Json] = {
        "id": client.id,
        "client_id": client.client_id,
        "client_secret": minted.text,
        "name": client.name,
        "scopes": list(client.scopes),
        "token_endpoint": call.services.issuer_url + TOKEN_PATH,
    }
    details = {name: content[name] for name in ("name", "scopes")}
    return Response(content, NO_STORE, change=_change(client, details))


def list_api_clients(connection: Connection, call: RequestContext) -> Response:
    """Return one page of API clients, newest first."""
    query: ApiClientQuery = call.query
    page = credentials.list_api_clients(
        connection,
        search=query.search,
        limit=query.limit,
        before=query.cursor.before if query.cursor else None,
    )

    def item(row: Row[Any]) -> Json:
        return _represent(to_api_client(row))

    return record_page_response(call, page, name="clients", kind=LIST, item=item)


def get_api_client(connection: Connection, call: RequestContext) -> Response:
    """Return an API client without its secret."""
    return Response(_represent(_find(connection, call)))


def regenerate_api_client_secret(connection: Connection, call: RequestContext) -> Response:
    """Replace a client's secret and return it. The old secret stops working immediately."""
    minted: MintedSecret = call.prepared
    with translate_record_errors(API_CLIENT_NOT_FOUND, CLIENT_NOT_ACTIVE):
        client = regenerate_secret(
            connection, call.path["client_id"], minted.hash, call.services.clock.now()
        )
    content = {"client_id": client.client_id, "client_secret": minted.text}
    return Response(content, NO_STORE, change=_change(client))


def revoke_api_client_tokens(connection: Connection, call: RequestContext) -> Response:
    """Revoke all of a client's tokens and return the client."""
    with translate_record_errors(API_CLIENT_NOT_FOUND):
        client = revoke_tokens(connection, call.path["client_id"], call.services.clock.now())
    return Response(_represent(client), change=_change(client))


def disable_api_client(connection: Connection, call: RequestContext) -> Response:
    """Disable a client permanently and return it."""
    with translate_record_errors(API_CLIENT_NOT_FOUND):
        client, changed = credentials.disable_api_client(
            connection, call.path["client_id"], call.services.clock.now()
        )
    change = _change(client, {"name": client.name}) if changed else None
    return Response(_represent(client), change=change)


def _change(client: ApiClient, details: dict[str, Json] | None = None) -> AuditedChange:
    return AuditedChange(target=f"client:{client.client_id}", details=details or {})


def _find(connection: Connection, call: RequestContext) -> ApiClient:
    client = load_api_client(connection, call.path["client_id"])
    if client is None:
        raise API_CLIENT_NOT_FOUND.error()
    return client


def _represent(client: ApiClient) -> dict[str, Json]:
    return {
        "id": client.id,
        "client_id": client.client_id,
        "name": client.name,
        "description": client.description,
        "status": client.status,
        "scopes": list(client.scopes),
        "created_by": client.created_by,
        "created_at": isoformat(client.created_at),
        "last_used_at": isoformat_or_none(client.last_used_at),
    }


_CLIENTS = "/api/admin/api-clients"
_CLIENT = f"{_CLIENTS}/{{client_id}}"

ENDPOINTS = (
    Endpoint(
        method="POST",
        path=_CLIENTS,
        access=AccessRole.ADMIN,
        summary="Create an API client and return its secret once",
        handler=create_api_client,
        prepare=mint_client,
        body=NewApiClient,
        response=CreatedApiClient,
        action="api-client.create",
        idempotent=True,
        shows_secret=True,
        status=201,
    ),
    Endpoint(
        method="GET",
        path=_CLIENTS,
        access=AccessRole.ADMIN,
        summary="List API clients, newest first",
        handler=list_api_clients,
        query=ApiClientQuery,
        response=ApiClientList,
    ),
    Endpoint(
        method="GET",
        path=_CLIENT,
        access=AccessRole.ADMIN,
        summary="Get an API client",
        handler=get_api_client,
        is_brief=True,
        response=ApiClientItem,
        problems=(API_CLIENT_NOT_FOUND,),
    ),
    Endpoint(
        method="POST",
        path=f"{_CLIENT}/regenerate-secret",
        access=AccessRole.ADMIN,
        summary="Regenerate an API client's secret and return it once",
        handler=regenerate_api_client_secret,
        prepare=mint_secret,
        response=RegeneratedSecret,
        action="api-client.regenerate-secret",
        idempotent=True,
        shows_secret=True,
        problems=(API_CLIENT_NOT_FOUND, CLIENT_NOT_ACTIVE),
    ),
    Endpoint(
        method="POST",
        path=f"{_CLIENT}/revoke-tokens",
        access=AccessRole.ADMIN,
        summary="Revoke all of an API client's tokens",
        handler=revoke_api_client_tokens,
        response=ApiClientItem,
        action="api-client.revoke-tokens",
        problems=(API_CLIENT_NOT_FOUND,),
    ),
    Endpoint(
        method="DELETE",
        path=_CLIENT,
        access=AccessRole.ADMIN,
        summary="Disable an API client permanently (tokens stay valid until they expire)",
        handler=disable_api_client,
        response=ApiClientItem,
        action="api-client.disable",
        problems=(API_CLIENT_NOT_FOUND,),
    ),
)
