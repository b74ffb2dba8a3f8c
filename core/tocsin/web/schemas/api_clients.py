"""Schemas of API clients."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from pydantic import Field

from tocsin.credentials import (
    ClientStatus,
    Scope,
)
from tocsin.model import Json
from tocsin.web.parsing import BodyModel, QueryModel, ResponseModel
from tocsin.web.schemas.examples import CLIENT_ID, CLIENT_SECRET, FINISHED, ULID, URL
from tocsin.web.schemas.fields import Limit, Name, Scopes, Search, Text, cursor_field

LIST = "c"


class NewApiClient(BodyModel):
    """A new API client."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "name": "soar",
        "scopes": ["incidents:read", "search:read"],
        "description": "The SOAR platform.",
    }

    name: Name
    scopes: Scopes
    description: Text = ""


class CreatedApiClient(ResponseModel):
    """A new API client with its secret."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "id": ULID,
        "client_id": CLIENT_ID,
        "client_secret": CLIENT_SECRET,
        "name": "soar",
        "scopes": ["incidents:read", "search:read"],
        "token_endpoint": f"{URL}/oauth/token",
    }

    id: str
    client_id: str
    client_secret: str = Field(description="The client's secret; shown only once.")
    name: str
    scopes: list[Scope]
    token_endpoint: str = Field(description="URL for obtaining access tokens.")


class ApiClientQuery(QueryModel):
    """Query parameters for listing API clients."""

    search: Search = Field(
        default="",
        description="Case-insensitive text to find in `name`, `description`, "
        "`client_id`, `created_by` or `scopes`.",
    )
    limit: Limit = 50
    cursor: cursor_field(LIST) | None = None  # type: ignore[valid-type]


class ApiClientItem(ResponseModel):
    """An API client without its secret."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "id": ULID,
        "client_id": CLIENT_ID,
        "name": "soar",
        "description": "The SOAR platform.",
        "scopes": ["incidents:read", "search:read"],
        "created_by": "ana",
        "last_used_at": FINISHED,
    }

    id: str
    client_id: str
    name: str
    description: str
    status: ClientStatus
    scopes: list[Scope]
    created_by: str
    created_at: datetime
    last_used_at: datetime | None = Field(
        description="When it was last used, accurate to about a minute."
    )


class ApiClientList(ResponseModel):
    """One page of API clients."""

    clients: list[ApiClientItem]
    total: int
    next_cursor: str | None = Field(description="Next `cursor`; null on the last page.")


class RegeneratedSecret(ResponseModel):
    """An API client's new secret."""

    EXAMPLE: ClassVar[dict[str, Json]] = {"client_id": CLIENT_ID, "client_secret": CLIENT_SECRET}

    client_id: str
    client_secret: str = Field(description="New secret; shown only once.")
