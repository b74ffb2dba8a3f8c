"""API clients: format of their secrets, stored records and their changes.

A client secret is `cs_live_<secret><checksum>`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, Row, bindparam, insert, select, update

from tocsin.credentials.records import (
    CHECKED_SECRET,
    IDENTIFIER,
    IDENTIFIER_LENGTH,
    SECRET_LENGTH,
    NoSuchRecordError,
    NotActiveError,
    RecordPage,
    add_checksum,
    has_checksum,
    list_records,
    random_text,
    search_text,
)
from tocsin.store.tables import api_clients

CLIENT_SECRET_PREFIX = "cs_live_"  # noqa: S105 - a prefix
CLIENT_ID_PREFIX = "cl_"
_CLIENT_ID = re.compile(CLIENT_ID_PREFIX + IDENTIFIER)
_CLIENT_SECRET = re.compile(CLIENT_SECRET_PREFIX + CHECKED_SECRET)


@dataclass(frozen=True, slots=True)
class ClientSecret:
    """ID and secret of an API client."""

    identifier: str
    secret: str = field(repr=False)


def generate_client_id() -> str:
    """Return the ID of a new client."""
    return CLIENT_ID_PREFIX + random_text(IDENTIFIER_LENGTH)


def generate_client_secret() -> str:
    """Return a new client secret, which is shown once."""
    return add_checksum(CLIENT_SECRET_PREFIX + random_text(SECRET_LENGTH))


def parse_client(client_id: str, secret: str) -> ClientSecret | None:
    """Return a client's credentials, None if they are malformed; does no I/O."""
    if not _CLIENT_ID.fullmatch(client_id) or not _CLIENT_SECRET.fullmatch(secret):
        return None
    return ClientSecret(client_id, secret) if has_checksum(secret) else None


class ClientStatus(StrEnum):
    """Status of a client; a disabled client cannot be enabled again."""

    ACTIVE = "active"
    DISABLED = "disabled"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiClient:
    """Record of a client, with a salted hash of its secret."""

    id: str
    client_id: str
    name: str
    description: str
    scopes: tuple[str, ...]
    """In alphabetical order."""
    secret_hash: str
    created_by: str
    created_at: datetime
    updated_at: datetime
    last_used_at: datetime | None = None
    disabled_at: datetime | None = None
    token_generation: int = 0
    """Tokens of an earlier generation are revoked."""

    @property
    def status(self) -> ClientStatus:
        """Status of the client."""
        return ClientStatus.ACTIVE if self.disabled_at is None else ClientStatus.DISABLED


_by_client_id = select(api_clients).where(api_clients.c.client_id == bindparam("client_id"))
_columns = [column.name for column in api_clients.columns if column.name != "search"]


def create_api_client(connection: Connection, client: ApiClient) -> None:
    """Store a new client."""
    values = {name: getattr(client, name) for name in _columns}
    searchable = (
        client.name,
        client.description,
        client.client_id,
        client.created_by,
        client.scopes,
    )
    row = values | {"scopes": sorted(client.scopes), "search": search_text(*searchable)}
    connection.execute(insert(api_clients).values(row))


def load_api_client(connection: Connection, client_id: str) -> ApiClient | None:
    """Return the client with this ID, None if there is none."""
    row = connection.execute(_by_client_id, {"client_id": client_id}).one_or_none()
    return None if row is None else to_api_client(row)


def list_api_clients(
    connection: Connection, *, search: str = "", limit: int = 50, before: str | None = None
) -> RecordPage:
    """Return one page of the matching clients, newest first."""
    return list_records(connection, api_clients, search=search, limit=limit, before=before)


def regenerate_secret(
    connection: Connection, client_id: str, secret_hash: str, now: datetime
) -> ApiClient:
    """Replace the client's secret immediately. Raises NoSuchRecordError and NotActiveError."""
    client = _load_for_update(connection, client_id)
    if client.status is not ClientStatus.ACTIVE:
        raise NotActiveError(client.status)
    return _store(connection, replace(client, secret_hash=secret_hash, updated_at=now))


def revoke_tokens(connection: Connection, client_id: str, now: datetime) -> ApiClient:
    """Revoke all tokens of the client. Raises NoSuchRecordError."""
    client = _load_for_update(connection, client_id)
    return _store(
        connection, replace(client, token_generation=client.token_generation + 1, updated_at=now)
    )


def disable_api_client(
    connection: Connection, client_id: str, now: datetime
) -> tuple[ApiClient, bool]:
    """Disable the client permanently; return it and whether it changed.

    Its tokens stay valid. Raises NoSuchRecordError.
    """
    client = _load_for_update(connection, client_id)
    if client.disabled_at is not None:
        return client, False
    return _store(connection, replace(client, disabled_at=now, updated_at=now)), True


def to_api_client(row: Row[Any]) -> ApiClient:
    """Return the client of a row."""
    values = row._asdict()
    del values["search"]
    return ApiClient(**values | {"scopes": tuple(values["scopes"])})


def _load_for_update(connection: Connection, client_id: str) -> ApiClient:
    statement = _by_client_id.with_for_update()
    row = connection.execute(statement, {"client_id": client_id}).one_or_none()
    if row is None:
        raise NoSuchRecordError
    return to_api_client(row)


_CHANGING = ("secret_hash", "updated_at", "disabled_at", "token_generation")


def _store(connection: Connection, client: ApiClient) -> ApiClient:
    values = {name: getattr(client, name) for name in _CHANGING}
    connection.execute(update(api_clients).where(api_clients.c.id == client.id).values(values))
    return client
