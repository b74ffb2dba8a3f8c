"""API keys as they are stored."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sqlalchemy import Connection, bindparam, insert, select

from tocsin.store.tables import api_keys


class KeyStatus(StrEnum):
    """Whether a key authenticates."""

    ACTIVE = "active"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """A key's record; of its secret there is only a salted hash."""

    id: str
    key_id: str
    name: str
    description: str
    scopes: tuple[str, ...]
    """In alphabetical order."""
    secret_hash: str
    created_by: str
    created_at: datetime
    expires_at: datetime

    def status(self, now: datetime) -> KeyStatus:
        """Return where the key stands at this time."""
        return KeyStatus.ACTIVE if now < self.expires_at else KeyStatus.EXPIRED


_insert = insert(api_keys)
_by_key_id = select(api_keys).where(api_keys.c.key_id == bindparam("key_id"))


def create_api_key(connection: Connection, key: ApiKey) -> None:
    """Store a new key."""
    values = {column.name: getattr(key, column.name) for column in api_keys.columns}
    connection.execute(_insert, values | {"scopes": sorted(key.scopes)})


def load_api_key(connection: Connection, key_id: str) -> ApiKey | None:
    """Return the key of this identifier as it is stored now, or None where there is none."""
    row = connection.execute(_by_key_id, {"key_id": key_id}).one_or_none()
    if row is None:
        return None
    values = row._asdict()
    return ApiKey(**values | {"scopes": tuple(values["scopes"])})
