"""Schemas of console sessions."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, ClassVar

from pydantic import Field, StringConstraints

from tocsin.credentials import ConsoleRole
from tocsin.model import Json
from tocsin.web.parsing import QueryModel, ResponseModel
from tocsin.web.schemas.examples import CONSOLE_SESSION_ID, CREATED
from tocsin.web.schemas.fields import Limit, cursor_field

LIST = "w"
Principal = Annotated[str, StringConstraints(min_length=3, max_length=500, pattern=r"^\w+:.+$")]
"""A user, as in the audit log."""


class ConsoleSessionQuery(QueryModel):
    """Query parameters for listing console sessions."""

    principal: Principal | None = Field(
        default=None, description="User, such as `admin:ana` or `oidc:00u1`."
    )
    limit: Limit = 50
    cursor: cursor_field(LIST) | None = None  # type: ignore[valid-type]


class PrincipalQuery(QueryModel):
    """The user whose sessions are ended."""

    principal: Principal = Field(description="User, such as `admin:ana` or `oidc:00u1`.")


class ConsoleSessionItem(ResponseModel):
    """A console session."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "id": CONSOLE_SESSION_ID,
        "principal": "oidc:00u1",
        "name": "ana@example.com",
        "role": "analyst",
        "begun_at": CREATED,
        "used_at": CREATED,
        "expires_at": "2026-11-21T17:33:01.123Z",
        "address": "192.0.2.10",
        "browser": "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0",
    }

    id: str
    principal: str = Field(description="The user, as in the audit log.")
    name: str = Field(description="Name that the console shows.")
    role: ConsoleRole
    begun_at: datetime
    used_at: datetime | None = Field(description="When it was last used, accurate to five minutes.")
    expires_at: datetime
    address: str | None = Field(description="IP address from which the user signed in.")
    browser: str | None = Field(description="`User-Agent` with which the user signed in.")


class ConsoleSessionList(ResponseModel):
    """One page of console sessions."""

    console_sessions: list[ConsoleSessionItem]
    next_cursor: str | None = Field(description="Next `cursor`; null on the last page.")


class EndedSessions(ResponseModel):
    """Console sessions that were ended."""

    EXAMPLE: ClassVar[dict[str, Json]] = {"ended": 2}

    ended: int = Field(description="Number of ended sessions.")
