"""Administering API keys."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any

from pydantic import Field
from sqlalchemy import Connection, Row
from ulid import ULID

from tocsin.clock import isoformat, isoformat_or_none
from tocsin.credentials import (
    ApiKey,
    KeyStatus,
    KeyValue,
    Scope,
    disable_api_key,
    generate_key,
    generate_value,
    list_api_keys,
    load_api_key,
    rotate_api_key,
    to_api_key,
)
from tocsin.credentials import create_api_key as store_api_key
from tocsin.fields import WholeNumber
from tocsin.model import Json
from tocsin.web.authentication import API_KEY_HEADER
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

Days = Annotated[int, Field(ge=1, le=3650), WholeNumber]

LIST = "k"
_NOT_ROTATED = "The API key is {status}; only an active one can be rotated."


class NewApiKey(BodyModel):
    """What an API key is to be."""

    name: Name
    scopes: Scopes
    description: Text = ""
    expires_in_days: Days = 365


class CreatedApiKey(ResponseModel):
    """A new API key, with its value."""

    id: str
    key_id: str = Field(description="The key's public identifier.")
    api_key: str = Field(description="The key itself, shown this once.")
    name: str
    scopes: list[Scope]
    expires_at: datetime
    header_name: str = Field(description="The header that carries the key.")


class ApiKeyQuery(QueryModel):
    """Which keys, and how many at once."""

    search: Search = Field(
        default="",
        description="Only keys that hold this, in any case, in `name`, `description`, `key_id`, "
        "`created_by` or `scopes`.",
    )
    limit: Limit = 50
    cursor: cursor_field(LIST) | None = None  # type: ignore[valid-type]


class ApiKeyItem(ResponseModel):
    """An API key, without its value."""

    id: str
    key_id: str
    key_prefix: str = Field(description="What the key begins with.")
    name: str
    description: str
    status: KeyStatus
    scopes: list[Scope]
    created_by: str
    created_at: datetime
    updated_at: datetime
    expires_at: datetime
    last_used_at: datetime | None = Field(description="To the minute or so.")
    last_rotated_at: datetime | None
    previous_key_expires_at: datetime | None = Field(
        description="When the value before the last rotation ends; null where it has."
    )


class ApiKeyList(ResponseModel):
    """One page of API keys."""

    api_keys: list[ApiKeyItem]
    total: int
    next_cursor: str | None = Field(description="For `cursor`; null on the last page.")


class Rotation(BodyModel):
    """How an API key is to be rotated."""

    grace_period_days: Annotated[int, Field(ge=0, le=365), WholeNumber] = Field(
        default=7,
        description="How long the value before is accepted; 0 ends it at once.",
    )
    expires_in_days: Days | None = Field(
        default=None, description="By default the expiry stays as it is."
    )


class RotatedApiKey(ResponseModel):
    """An API key's new value."""

    key_id: str
    api_key: str = Field(description="The key's new value, shown this once.")
    expires_at: datetime
    previous_key_expires_at: datetime | None = Field(
        description="Until when the value before is accepted; null where it is not."
    )


@dataclass(frozen=True, slots=True)
class MintedKey:
    """A new value of a key, and what is stored of it."""

    value: KeyValue
    text: str
    secret_hash: str


async def mint_key(call: RequestContext) -> MintedKey:
    """Make a new key's value."""
    parse_scopes(call.body.scopes)
    return await _mint(call, *generate_key(call.services.key_prefix))


async def mint_value(call: RequestContext) -> MintedKey:
    """Make a new value of the key of the path."""
    key = await call.services.database.read(_find, call)
    return await _mint(call, *generate_value(key.prefix, key.key_id))


async def _mint(call: RequestContext, value: KeyValue, text: str) -> MintedKey:
    return MintedKey(value, text, await call.services.hasher.hash(value.secret))


def create_api_key(connection: Connection, call: RequestContext) -> Response:
    """Create an API key, and answer its value."""
    body: NewApiKey = call.body
    minted: MintedKey = call.prepared
    now = call.services.clock.now()
    key = ApiKey(
        id=str(ULID.from_datetime(now)),
        key_id=minted.value.identifier,
        prefix=minted.value.prefix,
        name=body.name,
        description=body.description,
        scopes=parse_scopes(body.scopes),
        secret_hash=minted.secret_hash,
        created_by=call.principal.name,
        created_at=now,
        updated_at=now,
        expires_at=now + timedelta(days=body.expires_in_days),
    )
    store_api_key(connection, key)
    content: dict[str, Json] = {
        "id": key.id,
        "key_id": key.key_id,
        "api_key": minted.text,
        "name": key.name,
        "scopes": list(key.scopes),
        "expires_at": isoformat(key.expires_at),
        "header_name": API_KEY_HEADER,
    }
    details = {name: content[name] for name in ("name", "scopes", "expires_at")}
    change = AuditedChange(target=f"key:{key.key_id}", details=details)
    return Response(content, NO_STORE, change=change)


def list_keys(connection: Connection, call: RequestContext) -> Response:
    """Answer one page of the keys, the newest first."""
    query: ApiKeyQuery = call.query
    page = list_api_keys(
        connection,
        search=query.search,
        limit=query.limit,
        before=query.cursor.before if query.cursor else None,
    )

    def item(row: Row[Any]) -> Json:
        return _represent(to_api_key(row), call)

    return record_page_response(call, page, name="api_keys", kind=LIST, item=item)


def get_api_key(connection: Connection, call: RequestContext) -> Response:
    """Answer one key, without its value."""
    return Response(_represent(_find(connection, call), call))


def rotate_key(connection: Connection, call: RequestContext) -> Response:
    """Give a key a new value, and answer it."""
    body: Rotation = call.body
    minted: MintedKey = call.prepared
    now = call.services.clock.now()
    with translate_record_errors("API key", not_active=_NOT_ROTATED):
        key = rotate_api_key(
            connection,
            call.path["key_id"],
            minted.secret_hash,
            now=now,
            grace=timedelta(days=body.grace_period_days),
            expires_at=now + timedelta(days=body.expires_in_days) if body.expires_in_days else None,
        )
    dates: dict[str, Json] = {
        "expires_at": isoformat(key.expires_at),
        "previous_key_expires_at": isoformat_or_none(key.previous_expires_at),
    }
    content = {"key_id": key.key_id, "api_key": minted.text, **dates}
    return Response(
        content, NO_STORE, change=AuditedChange(target=f"key:{key.key_id}", details=dates)
    )


def disable_key(connection: Connection, call: RequestContext) -> Response:
    """Disable a key for good, and answer it."""
    with translate_record_errors("API key"):
        key, changed = disable_api_key(connection, call.path["key_id"], call.services.clock.now())
    change = (
        AuditedChange(target=f"key:{key.key_id}", details={"name": key.name}) if changed else None
    )
    return Response(_represent(key, call), change=change)


def _find(connection: Connection, call: RequestContext) -> ApiKey:
    key = load_api_key(connection, call.path["key_id"])
    if key is None:
        raise not_found("API key")
    return key


def _represent(key: ApiKey, call: RequestContext) -> dict[str, Json]:
    now = call.services.clock.now()
    return {
        "id": key.id,
        "key_id": key.key_id,
        "key_prefix": key.prefix + key.key_id,
        "name": key.name,
        "description": key.description,
        "status": key.status(now),
        "scopes": list(key.scopes),
        "created_by": key.created_by,
        "created_at": isoformat(key.created_at),
        "updated_at": isoformat(key.updated_at),
        "expires_at": isoformat(key.expires_at),
        "last_used_at": isoformat_or_none(key.last_used_at),
        "last_rotated_at": isoformat_or_none(key.last_rotated_at),
        "previous_key_expires_at": isoformat_or_none(key.previous_end(now)),
    }
