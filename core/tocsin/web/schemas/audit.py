"""Schemas of the audit log."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, ClassVar

from pydantic import Field, StringConstraints

from tocsin.model import Json
from tocsin.web.parsing import QueryModel, ResponseModel
from tocsin.web.schemas.examples import EXPIRES
from tocsin.web.schemas.fields import Limit, Timestamp, TotalRelation, cursor_field

LIST = "u"

# As long as an entry holds them; PostgreSQL's text holds every character but this one
_Exact = Annotated[str, StringConstraints(max_length=500, pattern=r"^[^\x00]*$")]


class AuditQuery(QueryModel):
    """Query parameters for listing audit entries."""

    action: _Exact | None = Field(default=None, description="Filter by action.")
    actor: _Exact | None = Field(default=None, description="Filter by actor, such as `admin:ana`.")
    target: _Exact | None = Field(default=None, description="Filter by target.")
    since: Timestamp | None = Field(default=None, description="Only entries at or after this time.")
    until: Timestamp | None = Field(default=None, description="Only entries before this time.")
    limit: Limit = 50
    cursor: cursor_field(LIST) | None = None  # type: ignore[valid-type]


class AuditEntry(ResponseModel):
    """An entry of the audit log: an action, or a count of rejected requests."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "id": 17,
        "actor": "admin:ana",
        "action": "api-key.create",
        "target": "key:0a1B2c3D4e5F6g7H",
        "address": "198.51.100.4",
        "request_id": "01KAJD9V3M1C8ZP0Q5T9W7XJ2B",
        "details": {
            "name": "playbooks",
            "scopes": ["incidents:read", "search:read"],
            "expires_at": EXPIRES,
        },
        "position": 17,
        "seal": "b3f1c2a4d5e6978812345678abcdef0012345678abcdef0012345678abcdef00",
    }

    id: int
    at: datetime
    actor: str
    action: str
    target: str | None
    address: str
    request_id: str
    count: int
    details: dict[str, Any] = Field(
        description="Details of the action. If the stored details are not a JSON object, "
        "`unreadable` contains them as text."
    )
    position: int | None = Field(
        description="Position in the chain; null until the entry is sealed."
    )
    seal: str | None = Field(description="Keyed hash of the entry and the previous seal.")


class AuditList(ResponseModel):
    """One page of the audit log."""

    entries: list[AuditEntry]
    total: int = Field(description="Number of matches, counted up to 10,000.")
    total_relation: TotalRelation
    next_cursor: str | None = Field(description="Next `cursor`; null on the last page.")
