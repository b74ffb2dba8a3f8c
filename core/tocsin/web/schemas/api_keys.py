"""Schemas of API keys."""

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
    """A new API key."""

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
    """A new API key with its value."""

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
    key_id: str = Field(description="Public ID of the key.")
    api_key: str = Field(description="The key itself; shown only once.")
    name: str
    scopes: list[Scope]
    expires_at: datetime
    header_name: str = Field(description="Header field in which to send the key.")


class ApiKeyQuery(QueryModel):
    """Query parameters for listing API keys."""

    search: Search = Field(
        default="",
        description="Case-insensitive text to find in `name`, `description`, "
        "`key_id`, `created_by` or `scopes`.",
    )
    limit: Limit = 50
    cursor: cursor_field(LIST) | None = None  # type: ignore[valid-type]


class ApiKeyItem(ResponseModel):
    """An API key without its value."""

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
    key_prefix: str = Field(description="First part of the key: its prefix and `key_id`.")
    name: str
    description: str
    status: KeyStatus
    scopes: list[Scope]
    created_by: str
    created_at: datetime
    updated_at: datetime
    expires_at: datetime
    last_used_at: datetime | None = Field(
        description="When it was last used, accurate to about a minute."
    )
    last_rotated_at: datetime | None
    previous_key_expires_at: datetime | None = Field(
        description="When the previous value expires; null if none is valid."
    )


class ApiKeyList(ResponseModel):
    """One page of API keys."""

    api_keys: list[ApiKeyItem]
    total: int
    next_cursor: str | None = Field(description="Next `cursor`; null on the last page.")


class Rotation(BodyModel):
    """Rotation of an API key."""

    EXAMPLE: ClassVar[dict[str, Json]] = {"grace_period_days": 7}

    grace_period_days: Annotated[int, Field(ge=0, le=365), WholeNumber] = Field(
        default=7,
        description="How many days the previous value stays valid. With 0, it stops working "
        "immediately.",
    )
    expires_in_days: Days | None = Field(
        default=None,
        description="In how many days the key expires. By default, its expiry time does not "
        "change.",
    )


class RotatedApiKey(ResponseModel):
    """The new value of an API key."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "key_id": KEY_ID,
        "api_key": API_KEY,
        "expires_at": EXPIRES,
        "previous_key_expires_at": "2026-11-28T05:33:01.123Z",
    }

    key_id: str
    api_key: str = Field(description="The new value; shown only once.")
    expires_at: datetime
    previous_key_expires_at: datetime | None = Field(
        description="When the previous value expires; null if none is valid."
    )
