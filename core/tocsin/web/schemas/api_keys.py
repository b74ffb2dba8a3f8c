"""Schemas of api_keys."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, ClassVar

from pydantic import Field

from tocsin.credentials import (
    KeyStatus,
    Scope,
)
from tocsin.fields import WholeNumber
from tocsin.model import Json
from tocsin.web.parsing import BodyModel, QueryModel, ResponseModel
from tocsin.web.schemas.examples import API_KEY, EXPIRES, FINISHED, KEY_ID, ULID
from tocsin.web.schemas.fields import Limit, Name, Scopes, Search, Text, cursor_field

Days = Annotated[int, Field(ge=1, le=3650), WholeNumber]

LIST = "k"


class NewApiKey(BodyModel):
    """What an API key is to be."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "name": "playbooks",
        "scopes": ["incidents:read", "search:read"],
        "description": "Reads incidents for the night shift's playbooks.",
        "expires_in_days": 365,
    }

    name: Name
    scopes: Scopes
    description: Text = ""
    expires_in_days: Days = 365


class CreatedApiKey(ResponseModel):
    """A new API key, with its value."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "id": ULID,
        "key_id": KEY_ID,
        "api_key": API_KEY,
        "name": "playbooks",
        "scopes": ["incidents:read", "search:read"],
        "expires_at": EXPIRES,
        "header_name": "X-API-Key",
    }

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

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "id": ULID,
        "key_id": KEY_ID,
        "key_prefix": "sk_live_0a1B2c3D4e5F6g7H",
        "name": "playbooks",
        "description": "Reads incidents for the night shift's playbooks.",
        "scopes": ["incidents:read", "search:read"],
        "created_by": "ana",
        "expires_at": EXPIRES,
        "last_used_at": FINISHED,
    }

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

    EXAMPLE: ClassVar[dict[str, Json]] = {"grace_period_days": 7}

    grace_period_days: Annotated[int, Field(ge=0, le=365), WholeNumber] = Field(
        default=7,
        description="How long the value before is accepted; 0 ends it at once.",
    )
    expires_in_days: Days | None = Field(
        default=None, description="By default the expiry stays as it is."
    )


class RotatedApiKey(ResponseModel):
    """An API key's new value."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "key_id": KEY_ID,
        "api_key": API_KEY,
        "expires_at": EXPIRES,
        "previous_key_expires_at": "2026-11-28T05:33:01.123Z",
    }

    key_id: str
    api_key: str = Field(description="The key's new value, shown this once.")
    expires_at: datetime
    previous_key_expires_at: datetime | None = Field(
        description="Until when the value before is accepted; null where it is not."
    )
