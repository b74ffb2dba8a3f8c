"""Endpoint definitions, the services behind them, and the request context of their handlers."""

from __future__ import annotations

from asyncio import Semaphore
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import Any, Protocol

from aiohttp import web
from pydantic import BaseModel
from sqlalchemy import Connection
from yarl import URL

from tocsin.audit import Refusals
from tocsin.clock import Clock
from tocsin.credentials import (
    AccessTokens,
    Admins,
    Authenticator,
    Hasher,
    OidcSignIn,
    Principal,
    Scope,
)
from tocsin.delivery import DestinationValidator, SampleSender
from tocsin.enrichment import IncidentEnricher
from tocsin.incidents import ProviderFacts, PushInbox
from tocsin.metrics import Metrics
from tocsin.model import Json, Marking
from tocsin.registry import AbsentPlugin, PluginInventory
from tocsin.store import Database
from tocsin.web.parsing import BodyModel, QueryModel
from tocsin.web.problems import OAuthProblem, ProblemType
from tocsin.web.rate_limits import ApiRateLimits, ClientAddresses, PushAuthentication

REQUEST_ID = "X-Request-Id"
REQUEST_ID_KEY = web.RequestKey("request-id", str)
"""Key of a request's id."""


class AccessRole(Enum):
    """Who may call an endpoint that asks for no scope."""

    ADMIN = "admin"
    CLIENT = "client"
    """Whoever sends an API client's id and secret, as OAuth 2.0 has it (RFC 6749 section 2.3)."""
    SENDER = "sender"
    """Whoever proves to the provider in the path that it may push to it."""
    PUBLIC = "public"


Access = Scope | AccessRole
MAX_CONCURRENT_ENRICHMENTS = 4
"""So many incidents are enriched at once on a node, since each asks many others for much."""


class NodeStatus(Protocol):
    """State of the node that the API runs on."""

    @property
    def roles(self) -> Mapping[str, bool]:
        """Its roles, and whether each has started."""

    @property
    def absent(self) -> Sequence[AbsentPlugin]:
        """Everything that its `plugins.toml` configures and it does without."""

    @property
    def drift(self) -> Sequence[str]:
        """How its `plugins.toml` differs from what was applied."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiServices:
    """What the API stands on; made by whoever starts it."""

    database: Database
    clock: Clock
    hasher: Hasher
    admins: Admins
    access_tokens: AccessTokens
    authenticator: Authenticator
    throttle: ApiRateLimits
    refusals: Refusals
    addresses: ClientAddresses
    registrar: DestinationValidator
    samples: SampleSender
    inbox: PushInbox
    enricher: IncidentEnricher
    enrichments: Semaphore = field(default_factory=partial(Semaphore, MAX_CONCURRENT_ENRICHMENTS))
    """What an incident has to have a place in to be enriched here."""
    senders: PushAuthentication
    metrics: Metrics
    metrics_token: str | None
    """What admits to the metrics; None where only callers on this machine are."""
    public_url: str
    """Where others reach this service, without a slash at the end."""
    issuer_url: str
    """Where others reach the token endpoint's base, without a slash at the end."""
    key_prefix: str
    cors_origins: tuple[str, ...]
    oidc_sign_in: OidcSignIn | None = None
    """Where people may sign in to the console, beside what their admin tokens do."""
    node: NodeStatus
    providers: Sequence[ProviderFacts] = ()
    """What this node's `plugins.toml` says of its providers."""
    inventory: PluginInventory = field(default_factory=PluginInventory)
    """What this node has of the plugins that are installed."""
    markings: Mapping[str, Marking] = field(default_factory=dict)
    """How each provider's incidents are marked."""
    no_investigator: str | None = None
    """Why this service investigates nothing; None if it does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestContext:
    """One request that was let in, its parts validated against the endpoint's models."""

    services: ApiServices
    principal: Principal
    request: web.Request
    path: Mapping[str, str]
    """The parts of the path that have a name."""
    query: Any
    body: Any = None
    prepared: Any = None
    """What the endpoint's `prepare` returned."""

    @property
    def url(self) -> URL:
        """The path and query that were asked for."""
        return self.request.rel_url

    def next_link(self, cursor: str) -> str:
        """Return the header field that leads to the next page (RFC 8288)."""
        url = self.url.without_query_params("changed_after").update_query(cursor=cursor)
        return f'<{self.services.public_url}{url}>; rel="next"'


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedChange:
    """What a handler changed, for the audit log."""

    target: str
    details: Mapping[str, Json] = field(default_factory=dict)
    action: str | None = None
    """What the audit log calls it, where that is not the endpoint's own."""


@dataclass(frozen=True, slots=True)
class Response:
    """What is sent back; `status` only where it is not the endpoint's own."""

    content: Json | bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    status: int | None = None
    change: AuditedChange | None = None


TransactionHandler = Callable[[Connection, RequestContext], Response]
"""A plain function. For GET it runs in the same read that identified the caller; for any other
method in a write, one transaction with the audit row and the stored answer."""
AsyncHandler = Callable[[RequestContext], Awaitable[Response]]
"""A coroutine function, which sees to the database by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One thing that the API does."""

    method: str
    path: str
    access: Access
    summary: str
    handler: TransactionHandler | AsyncHandler
    response: type[BaseModel] | None = None
    """None where the response is not JSON."""
    media_type: str = "application/json"
    query: type[QueryModel] = QueryModel
    body: type[BodyModel] | None = None
    body_required: bool = True
    is_brief: bool = False
    """Whether its handler finds a few rows by their keys, and is not worth a thread."""
    prepare: Callable[[RequestContext], Awaitable[Any]] | None = None
    """Work that has to be done before the transaction, such as hashing."""
    action: str | None = None
    """What the audit log calls it."""
    idempotent: bool = False
    """Whether it takes an Idempotency-Key."""
    shows_secret: bool = False
    """Whether its answer holds what is shown once."""
    status: int = 200
    problems: tuple[ProblemType | OAuthProblem, ...] = ()
    """Problems of its own, beside those that follow from its access, query and body."""
    other_statuses: tuple[int, ...] = ()
    """Statuses that carry the same answer."""
