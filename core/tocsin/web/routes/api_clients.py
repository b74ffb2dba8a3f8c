"""Administering API clients."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import Field
from sqlalchemy import Connection, Row
from ulid import ULID

from tocsin.clock import isoformat, isoformat_or_none
from tocsin.credentials import (
    ApiClient,
    ClientStatus,
    Scope,
    disable_api_client,
    generate_client_id,
    generate_client_secret,
    list_api_clients,
    load_api_client,
    regenerate_secret,
    revoke_tokens,
    to_api_client,
)
from tocsin.credentials import create_api_client as store_api_client
from tocsin.model import Json
from tocsin.web.context import AuditedChange, RequestContext, Response
from tocsin.web.parsing import BodyModel, QueryModel, ResponseModel
from tocsin.web.routes.fields import (
    NO_STORE,
    Limit,
    Name,
    Scopes,
    Search,
    Text,
    cursor_field,
    not_found,
    parse_scopes,
    record_page_response,
    translate_record_errors,
)
from tocsin.web.routes.oauth import TOKEN_PATH

LIST = "c"
_NOT_REGENERATED = "The API client is {status} for good; create a new one."


class NewApiClient(BodyModel):
    """What an API client is to be."""

    name: Name
    scopes: Scopes
    description: Text = ""


class CreatedApiClient(ResponseModel):
    """A new API client, with its secret."""

    id: str
    client_id: str
    client_secret: str = Field(description="Shown this once.")
    name: str
    scopes: list[Scope]
    token_endpoint: str = Field(description="Where it obtains access tokens.")


class ApiClientQuery(QueryModel):
    """Which clients, and how many at once."""

    search: Search = Field(
        default="",
        description="Only clients that hold this, in any case, in `name`, `description`, "
        "`client_id`, `created_by` or `scopes`.",
    )
    limit: Limit = 50
    cursor: cursor_field(LIST) | None = None  # type: ignore[valid-type]


class ApiClientItem(ResponseModel):
    """An API client, without its secret."""

    id: str
    client_id: str
    name: str
    description: str
    status: ClientStatus
    scopes: list[Scope]
    created_by: str
    created_at: datetime
    last_used_at: datetime | None = Field(description="To the minute or so.")


class ApiClientList(ResponseModel):
    """One page of API clients."""

    clients: list[ApiClientItem]
    total: int
    next_cursor: str | None = Field(description="For `cursor`; null on the last page.")


class RegeneratedSecret(ResponseModel):
    """An API client's new secret."""

    client_id: str
    client_secret: str = Field(description="Shown this once; the one before is void.")


@dataclass(frozen=True, slots=True)
class MintedSecret:
    """A new secret, and what is stored of it."""

    text: str
    hash: str


async def mint_client(call: RequestContext) -> MintedSecret:
    """Make a new client's secret."""
    parse_scopes(call.body.scopes)
    return await _mint(call)


async def mint_secret(call: RequestContext) -> MintedSecret:
    """Make a new secret for the client of the path."""
    await call.services.database.read(_find, call)
    return await _mint(call)


async def _mint(call: RequestContext) -> MintedSecret:
    secret = generate_client_secret()
    return MintedSecret(secret, await call.services.hasher.hash(secret))


def create_api_client(connection: Connection, call: RequestContext) -> Response:
    """Create an API client, and answer its secret."""
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
    store_api_client(connection, client)
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


def list_clients(connection: Connection, call: RequestContext) -> Response:
    """Answer one page of the clients, the newest first."""
    query: ApiClientQuery = call.query
    page = list_api_clients(
        connection,
        search=query.search,
        limit=query.limit,
        before=query.cursor.before if query.cursor else None,
    )

    def item(row: Row[Any]) -> Json:
        return _represent(to_api_client(row))

    return record_page_response(call, page, name="clients", kind=LIST, item=item)


def get_api_client(connection: Connection, call: RequestContext) -> Response:
    """Answer one client, without its secret."""
    return Response(_represent(_find(connection, call)))


def regenerate_api_client_secret(connection: Connection, call: RequestContext) -> Response:
    """Give a client a new secret, and answer it; the old one is void at once."""
    minted: MintedSecret = call.prepared
    with translate_record_errors("API client", not_active=_NOT_REGENERATED):
        client = regenerate_secret(
            connection, call.path["client_id"], minted.hash, call.services.clock.now()
        )
    content = {"client_id": client.client_id, "client_secret": minted.text}
    return Response(content, NO_STORE, change=_change(client))


def revoke_api_client_tokens(connection: Connection, call: RequestContext) -> Response:
    """Make every token that a client was issued void, and answer the client."""
    with translate_record_errors("API client"):
        client = revoke_tokens(connection, call.path["client_id"], call.services.clock.now())
    return Response(_represent(client), change=_change(client))


def disable_client(connection: Connection, call: RequestContext) -> Response:
    """Disable a client for good, and answer it."""
    with translate_record_errors("API client"):
        client, changed = disable_api_client(
            connection, call.path["client_id"], call.services.clock.now()
        )
    change = _change(client, {"name": client.name}) if changed else None
    return Response(_represent(client), change=change)


def _change(client: ApiClient, details: dict[str, Json] | None = None) -> AuditedChange:
    return AuditedChange(target=f"client:{client.client_id}", details=details or {})


def _find(connection: Connection, call: RequestContext) -> ApiClient:
    client = load_api_client(connection, call.path["client_id"])
    if client is None:
        raise not_found("API client")
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
