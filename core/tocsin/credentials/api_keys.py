"""API keys: format, stored records and their changes.

An API key is `<prefix><key_id>_<secret><checksum>`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
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
    Principal,
    RecordPage,
    add_checksum,
    has_checksum,
    list_records,
    random_text,
    search_text,
)
from tocsin.store.tables import api_keys

DEFAULT_PREFIX = "sk_live_"
_KEY = re.compile(rf"([0-9A-Za-z_]{{0,32}})({IDENTIFIER})_{CHECKED_SECRET}")


@dataclass(frozen=True, slots=True)
class KeyValue:
    """Parts of an API key; only the secret is confidential."""

    prefix: str
    identifier: str
    secret: str = field(repr=False)


def generate_key(prefix: str = DEFAULT_PREFIX) -> tuple[KeyValue, str]:
    """Return the parts of a new key and its text, which is shown once."""
    return generate_value(prefix, random_text(IDENTIFIER_LENGTH))


def generate_value(prefix: str, key_id: str) -> tuple[KeyValue, str]:
    """Return the parts and the text of a new value for the key `key_id`."""
    value = KeyValue(prefix, key_id, random_text(SECRET_LENGTH))
    return value, add_checksum(f"{prefix}{key_id}_{value.secret}")


def parse_key(text: str) -> KeyValue | None:
    """Return the parts of an API key, None if `text` is not one; does no I/O."""
    match = _KEY.fullmatch(text)
    if match is None or not has_checksum(text):
        return None
    return KeyValue(match[1], match[2], match[3])


class KeyStatus(StrEnum):
    """Status of a key; only active keys authenticate."""

    ACTIVE = "active"
    EXPIRED = "expired"
    DISABLED = "disabled"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """Record of a key, with a salted hash of its secret."""

    id: str
    key_id: str
    prefix: str
    name: str
    description: str
    scopes: tuple[str, ...]
    """In alphabetical order."""
    secret_hash: str
    created_by: str
    created_at: datetime
    updated_at: datetime
    expires_at: datetime
    previous_hash: str | None = None
    previous_expires_at: datetime | None = None
    last_used_at: datetime | None = None
    last_rotated_at: datetime | None = None
    disabled_at: datetime | None = None

    @property
    def principal(self) -> Principal:
        """The caller that the key authenticates."""
        return Principal(f"key:{self.key_id}", self.name, self.scopes)

    def status(self, now: datetime) -> KeyStatus:
        """Return the status of the key at this time."""
        if self.disabled_at is not None:
            return KeyStatus.DISABLED
        return KeyStatus.ACTIVE if now < self.expires_at else KeyStatus.EXPIRED

    def hashes(self, now: datetime) -> tuple[str, ...]:
        """Return the hashes that a secret may match now, newest first."""
        if self.previous_hash is None or self.previous_end(now) is None:
            return (self.secret_hash,)
        return self.secret_hash, self.previous_hash

    def previous_end(self, now: datetime) -> datetime | None:
        """Return the end of the previous value's grace period, None if it is over or absent."""
        end = self.previous_expires_at
        return end if end is not None and now < end else None


_by_key_id = select(api_keys).where(api_keys.c.key_id == bindparam("key_id"))
KEY_COLUMNS = [
    column for column in api_keys.columns if column.name not in ("search", "row_version")
]
"""The columns with the fields of an `ApiKey`."""


def create_api_key(connection: Connection, key: ApiKey) -> None:
    """Store a new key."""
    values = {column.name: getattr(key, column.name) for column in KEY_COLUMNS}
    search = search_text(key.name, key.description, key.key_id, key.created_by, key.scopes)
    row = values | {"scopes": sorted(key.scopes), "search": search}
    connection.execute(insert(api_keys).values(row))


def load_api_key(connection: Connection, key_id: str) -> ApiKey | None:
    """Return the key with this ID, None if there is none."""
    row = connection.execute(_by_key_id, {"key_id": key_id}).one_or_none()
    return None if row is None else to_api_key(row)


def list_api_keys(
    connection: Connection, *, search: str = "", limit: int = 50, before: str | None = None
) -> RecordPage:
    """Return one page of the matching keys, newest first."""
    return list_records(connection, api_keys, search=search, limit=limit, before=before)


def rotate_api_key(
    connection: Connection,
    key_id: str,
    secret_hash: str,
    *,
    now: datetime,
    grace: timedelta,
    expires_at: datetime | None = None,
) -> ApiKey:
    """Replace the secret of the key and return the changed key.

    The previous value stays valid until the grace period, its own expiry or the new expiry ends,
    whichever is first. Without `expires_at` the expiry does not change. Raises NoSuchRecordError
    and NotActiveError.
    """
    key = _load_for_update(connection, key_id)
    if (status := key.status(now)) is not KeyStatus.ACTIVE:
        raise NotActiveError(status)
    expiry = expires_at or key.expires_at
    rotated = replace(
        key,
        secret_hash=secret_hash,
        previous_hash=key.secret_hash if grace else None,
        previous_expires_at=min(now + grace, key.expires_at, expiry) if grace else None,
        expires_at=expiry,
        last_rotated_at=now,
        updated_at=now,
    )
    return _store(connection, rotated)


def disable_api_key(connection: Connection, key_id: str, now: datetime) -> tuple[ApiKey, bool]:
    """Disable the key and delete its previous value; return it and whether it changed.

    Raises NoSuchRecordError.
    """
    key = _load_for_update(connection, key_id)
    if key.disabled_at is not None:
        return key, False
    gone = replace(
        key, disabled_at=now, updated_at=now, previous_hash=None, previous_expires_at=None
    )
    return _store(connection, gone), True


def to_api_key(row: Row[Any]) -> ApiKey:
    """Return the key of a row."""
    values = row._asdict()
    del values["search"], values["row_version"]
    return ApiKey(**values | {"scopes": tuple(values["scopes"])})


def _load_for_update(connection: Connection, key_id: str) -> ApiKey:
    row = connection.execute(_by_key_id.with_for_update(), {"key_id": key_id}).one_or_none()
    if row is None:
        raise NoSuchRecordError
    return to_api_key(row)


_CHANGING = (
    "secret_hash",
    "previous_hash",
    "previous_expires_at",
    "expires_at",
    "last_rotated_at",
    "updated_at",
    "disabled_at",
)


def _store(connection: Connection, key: ApiKey) -> ApiKey:
    values = {name: getattr(key, name) for name in _CHANGING}
    connection.execute(update(api_keys).where(api_keys.c.id == key.id).values(values))
    return key
