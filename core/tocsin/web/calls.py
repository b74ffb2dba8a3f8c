"""What an endpoint is, what its handler is given, and what that gives back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from pydantic import BaseModel
from sqlalchemy import Connection
from yarl import URL

from tocsin.clock import Clock
from tocsin.credentials import DEFAULT_PREFIX, Admins, Hasher, Principal, Scope
from tocsin.model import Json
from tocsin.store import Database
from tocsin.web.parsing import Body, Query


class Role(Enum):
    """Who may call an endpoint that asks for no scope."""

    ADMIN = "admin"
    PUBLIC = "public"


Access = Scope | Role


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """What the API stands on; made by whoever starts it."""

    database: Database
    clock: Clock
    hasher: Hasher
    admins: Admins
    public_url: str
    """Where others reach this service, without a slash at the end."""
    roles: Callable[[], Mapping[str, bool]]
    """Returns the roles that this node has, and whether each was started."""
    key_prefix: str = DEFAULT_PREFIX


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request that was let in, its parts validated against the endpoint's models."""

    services: Services
    principal: Principal
    path: Mapping[str, str]
    url: URL
    query: Any
    body: Any = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What is sent back; `status` only where it is not the endpoint's own."""

    content: Json
    headers: Mapping[str, str] = field(default_factory=dict)
    status: int | None = None


Reading = Callable[[Connection, Call], Answer]
"""A plain function: it runs in the same read that identified the caller."""
Writing = Callable[[Call], Awaitable[Answer]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One thing that the API does."""

    method: str
    path: str
    access: Access
    summary: str
    handler: Reading | Writing
    answer: type[BaseModel]
    query: type[Query] = Query
    body: type[Body] | None = None
    status: int = 200
    errors: tuple[int, ...] = ()
    """Problems of its own, beside those that follow from its access, query and body."""
    other_statuses: tuple[int, ...] = ()
    """Statuses that carry the same answer."""
