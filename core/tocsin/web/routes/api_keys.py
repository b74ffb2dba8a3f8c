"""Endpoints for API keys."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import Connection, Row
from ulid import ULID

from tocsin import credentials
from tocsin.clock import isoformat, isoformat_or_none
from tocsin.credentials import (
    ApiKey,
    KeyValue,
    generate_key,
    generate_value,
    load_api_key,
    to_api_key,
)
from tocsin.model import Json
from tocsin.web.authentication import API_KEY_HEADER
from tocsin.web.context import AccessRole, AuditedChange, Endpoint, RequestContext, Response
from tocsin.web.record_problems import API_KEY_NOT_FOUND, KEY_NOT_ACTIVE
from tocsin.web.routes.credential_records import (
    NO_STORE,
    parse_scopes,
    record_page_response,
    translate_record_errors,
)
from tocsin.web.schemas.api_keys import (
    LIST,
    ApiKeyItem,
    ApiKeyList,
    ApiKeyQuery,
    CreatedApiKey,
    NewApiKey,
    RotatedApiKey,
    Rotation,
)


@dataclass(frozen=True, slots=True)
class MintedKey:
    """A new value of a key and its stored hash."""

    value: KeyValue
    text: str
    secret_hash: str


async def mint_key(call: RequestContext) -> MintedKey:
    """Generate the value of a new key."""
    parse_scopes(call.body.scopes)
    return await _mint(call, *generate_key(call.services.key_prefix))


async def mint_value(call: RequestContext) -> MintedKey:
    """Generate a new value for the key in the path."""
    key = await call.services.database.read(_find, call)
    return await _mint(call, *generate_value(key.prefix, key.key_id))


async def _mint(call: RequestContext, value: KeyValue, text: str) -> MintedKey:
    return MintedKey(value, text, await call.services.hasher.hash(value.secret))


def create_api_key(connection: Connection, call: RequestContext) -> Response:
    """Create an API key and return its value."""
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
    credentials.create_api_key(connection, key)
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


def list_api_keys(connection: Connection, call: RequestContext) -> Response:
    """Return one page of API keys, newest first."""
    query: ApiKeyQuery = call.query
    page = credentials.list_api_keys(
        connection,
        search=query.search,
        limit=query.limit,
        before=query.cursor.before if query.cursor else None,
    )

    def item(row: Row[Any]) -> Json:
        return _represent(to_api_key(row), call)

    return record_page_response(call, page, name="api_keys", kind=LIST, item=item)


def get_api_key(connection: Connection, call: RequestContext) -> Response:
    """Return an API key without its value."""
    return Response(_represent(_find(connection, call), call))


def rotate_api_key(connection: Connection, call: RequestContext) -> Response:
    """Replace a key's value and return the new value."""
    body: Rotation = call.body
    minted: MintedKey = call.prepared
    now = call.services.clock.now()
    with translate_record_errors(API_KEY_NOT_FOUND, KEY_NOT_ACTIVE):
        key = credentials.rotate_api_key(
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


def disable_api_key(connection: Connection, call: RequestContext) -> Response:
    """Disable a key permanently and return it."""
    with translate_record_errors(API_KEY_NOT_FOUND):
        key, changed = credentials.disable_api_key(
            connection, call.path["key_id"], call.services.clock.now()
        )
    change = (
        AuditedChange(target=f"key:{key.key_id}", details={"name": key.name}) if changed else None
    )
    return Response(_represent(key, call), change=change)


def _find(connection: Connection, call: RequestContext) -> ApiKey:
    key = load_api_key(connection, call.path["key_id"])
    if key is None:
        raise API_KEY_NOT_FOUND.error()
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


_KEYS = "/api/admin/api-keys"
_KEY = f"{_KEYS}/{{key_id}}"

ENDPOINTS = (
    Endpoint(
        method="POST",
        path=_KEYS,
        access=AccessRole.ADMIN,
        summary="Create an API key and return its value once",
        handler=create_api_key,
        prepare=mint_key,
        body=NewApiKey,
        response=CreatedApiKey,
        action="api-key.create",
        idempotent=True,
        shows_secret=True,
        status=201,
    ),
    Endpoint(
        method="GET",
        path=_KEYS,
        access=AccessRole.ADMIN,
        summary="List API keys, newest first",
        handler=list_api_keys,
        query=ApiKeyQuery,
        response=ApiKeyList,
    ),
    Endpoint(
        method="GET",
        path=_KEY,
        access=AccessRole.ADMIN,
        summary="Get an API key",
        handler=get_api_key,
        is_brief=True,
        response=ApiKeyItem,
        problems=(API_KEY_NOT_FOUND,),
    ),
    Endpoint(
        method="POST",
        path=f"{_KEY}/rotate",
        access=AccessRole.ADMIN,
        summary="Rotate an API key and return its new value once",
        handler=rotate_api_key,
        prepare=mint_value,
        body=Rotation,
        body_required=False,
        response=RotatedApiKey,
        action="api-key.rotate",
        idempotent=True,
        shows_secret=True,
        problems=(API_KEY_NOT_FOUND, KEY_NOT_ACTIVE),
    ),
    Endpoint(
        method="DELETE",
        path=_KEY,
        access=AccessRole.ADMIN,
        summary="Disable an API key permanently",
        handler=disable_api_key,
        response=ApiKeyItem,
        action="api-key.disable",
        problems=(API_KEY_NOT_FOUND,),
    ),
)
