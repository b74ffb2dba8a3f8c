"""Endpoint definitions, the services behind them, and the request context of their handlers."""

from __future__ import annotations

from asyncio import Semaphore
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import Any, NamedTuple, Protocol

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
    ConsoleRole,
    Hasher,
    KeyRows,
    OidcSignIn,
    PasskeyCeremonies,
    Principal,
    Scope,
)
from tocsin.delivery import (
    DestinationServices,
)
from tocsin.enrichment import IncidentEnricher
from tocsin.erasure import Eraser
from tocsin.incidents import ProviderFacts, PushInbox
from tocsin.metrics import Metrics
from tocsin.model import Json, Marking
from tocsin.observables import Environment
from tocsin.registry import AbsentPlugin, PluginInventory
from tocsin.store import Database, DatabaseFault, DriverQuery, ReadReplica
from tocsin.web.client_addresses import ClientAddresses
from tocsin.web.etags import ResponseTags, is_expected
from tocsin.web.known_pages import DirectAnswer, KnownPages
from tocsin.web.parsing import BodyModel, QueryModel
from tocsin.web.problems import OAuthProblem, ProblemType
from tocsin.web.push_bodies import PushBodies
from tocsin.web.rate_limits import ApiRateLimits, PushAttemptLimits, WebhookLimits
from tocsin.web.shared_results import SharedResults

REQUEST_ID = "X-Request-Id"
REPLICA_LAG = "Tocsin-Replica-Lag"
"""Header field with the maximum lag of a response from a replica, in seconds."""
REQUEST_ID_KEY = web.RequestKey("request-id", str)
"""Key of a request's ID."""


class AccessRole(Enum):
    """Callers of an endpoint that requires no scope."""

    ADMIN = "admin"
    CLIENT = "client"
    """An API client with its ID and secret (RFC 6749 section 2.3)."""
    SENDER = "sender"
    """A sender that the provider in the path authenticates."""
    WEBHOOK = "webhook"
    """A receiver whose webhook the destination in the path authenticates."""
    PUBLIC = "public"


Access = Scope | AccessRole
MAX_CONCURRENT_ENRICHMENTS = 4
"""Maximum number of incidents that a node enriches at the same time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReloadResult:
    """Result of reloading the files of a node."""

    changed: Sequence[str]
    """Changed settings and tables of `plugins.toml` that are now in effect."""
    restart_required: Sequence[str]
    """Changed settings that take effect only after a restart of the service."""
    drift: Sequence[str]
    """Differences between `plugins.toml` and the applied configuration."""


class NodeStatus(Protocol):
    """State of the node on which the API runs."""

    @property
    def name(self) -> str:
        """The node's name, composed of its machine's name and its port."""

    @property
    def roles(self) -> Mapping[str, bool]:
        """The node's roles, and whether each has started."""

    @property
    def absent(self) -> Sequence[AbsentPlugin]:
        """Configured plugins and destinations that are not loaded."""

    @property
    def routing_hold(self) -> str | None:
        """Why no events are routed, and how to fix this; None if events are routed."""

    @property
    def drift(self) -> Sequence[str]:
        """Differences between the node's `plugins.toml` and the applied configuration."""

    @property
    def suspension(self) -> str | None:
        """Reason why the node is suspended; None if it is not suspended."""

    @property
    def stalled(self) -> Sequence[str]:
        """Names of the node's loops that are stuck."""

    @property
    def degraded(self) -> Mapping[str, str]:
        """Reasons why plugin objects are degraded, by the paths of their tables."""

    def find_objects(self, plugin: str) -> Mapping[str, Any]:
        """Return the running objects of a plugin, by the paths of their tables."""

    async def check_database(self) -> DatabaseFault | None:
        """Return the fault that prevents writes to the database; None if writes work."""

    async def reload(self) -> ReloadResult:
        """Reload the node's files; raises OperatorError, without any change, if one has errors."""


@dataclass(slots=True, kw_only=True, eq=False)
class ApiServices:
    """Services that the API uses; the API's runtime builds them, and a reload replaces some."""

    database: Database
    replica: ReadReplica | None = None
    """Replica for reads that may lag; None if the primary answers them."""
    clock: Clock
    hasher: Hasher
    admins: Admins
    access_tokens: AccessTokens
    authenticator: Authenticator
    key_rows: KeyRows
    tags: ResponseTags
    known_pages: KnownPages = field(default_factory=KnownPages)
    rate_limits: ApiRateLimits
    refusals: Refusals
    addresses: ClientAddresses
    destinations: DestinationServices
    inbox: PushInbox
    enricher: IncidentEnricher
    eraser: Eraser
    enrichments: Semaphore = field(default_factory=partial(Semaphore, MAX_CONCURRENT_ENRICHMENTS))
    """Limits how many incidents this node enriches at the same time."""
    push_attempt_limits: PushAttemptLimits
    webhook_limits: WebhookLimits
    push_bodies: PushBodies = field(default_factory=PushBodies)
    metrics: Metrics
    metrics_token: str | None
    """Token for the metrics; without one, only callers on this machine can read them."""
    public_url: str
    """Public URL of this service, without a trailing slash."""
    issuer_url: str
    """Public base URL of the token endpoint, without a trailing slash."""
    key_prefix: str
    cors_origins: tuple[str, ...]
    passkeys: PasskeyCeremonies
    oidc_sign_in: OidcSignIn | None = None
    """Sign-in to the console by OpenID Connect, in addition to admin tokens."""
    node: NodeStatus
    providers: Sequence[ProviderFacts] = ()
    """Providers in this node's `plugins.toml`."""
    inventory: PluginInventory = field(default_factory=PluginInventory)
    """Plugins that are installed on this node."""
    markings: Mapping[str, Marking] = field(default_factory=dict)
    """Marking of each provider's incidents."""
    environment: Environment = field(default_factory=Environment)
    """Internal and well-known entities."""
    shared_results: SharedResults = field(default_factory=SharedResults)
    """Results that are the same for every user and are therefore computed only once."""
    no_investigator: str | None = None
    """Reason why no investigator is configured; None if one is configured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestContext:
    """One admitted request, with its parts validated against the endpoint's models."""

    services: ApiServices
    principal: Principal
    request: web.Request
    path: Mapping[str, str]
    """Named parts of the path."""
    query: Any
    body: Any = None
    prepared: Any = None
    """Result of the endpoint's `prepare`."""
    expected_tag: str | None = None
    """Tag of the version that a console form was rendered from."""

    def expects(self, tag: str) -> bool:
        """Return whether the request may be applied to this version (RFC 9110 section 13.1.1)."""
        return self.expected_tag in {None, tag} and is_expected(self.request, tag)

    @property
    def url(self) -> URL:
        """The path and query of the request."""
        return self.request.rel_url

    def next_link(self, cursor: str) -> str:
        """Return the header field with the link to the next page (RFC 8288)."""
        url = self.url.without_query_params("changed_after").update_query(cursor=cursor)
        return f'<{self.services.public_url}{url}>; rel="next"'


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedChange:
    """A change by a handler, for the audit log."""

    target: str
    details: Mapping[str, Json] = field(default_factory=dict)
    action: str | None = None
    """Action in the audit log, if it is not the endpoint's own."""


@dataclass(frozen=True, slots=True)
class Response:
    """A handler's response; `status` only if it is not the endpoint's own."""

    content: Json | bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    status: int | None = None
    change: AuditedChange | Sequence[AuditedChange] | None = None
    version: str | None = None
    """Version of the stored data that was read, for the tag; None to hash the content."""
    after_commit: Callable[[], None] | None = None
    """Called once what the handler wrote is committed."""

    @property
    def changes(self) -> Sequence[AuditedChange]:
        """The changes for the audit log, each of which becomes an entry."""
        if self.change is None:
            return ()
        return (self.change,) if isinstance(self.change, AuditedChange) else self.change


TransactionHandler = Callable[[Connection, RequestContext], Response]
"""A plain function. For GET, it runs in the read transaction that identifies the caller. For any
other method, it runs in the write transaction that also stores the audit entry and response."""
AsyncHandler = Callable[[RequestContext], Awaitable[Response]]
"""A coroutine function that uses the database itself."""


class DirectRequest(NamedTuple):
    """A request's target, whose parts do not need decoding."""

    target: str
    """The path and the query."""
    parameter: str
    """Value of the parameter in the path; empty if the path has no parameter."""
    query: str


class DirectQuery(NamedTuple):
    """A single statement that answers a request."""

    query: DriverQuery
    """The query; its first parameter is the key ID, and its first column is the key's version."""
    values: Sequence[Any]
    """The other parameters."""
    render: Callable[[Sequence[Any]], DirectAnswer | None]
    """Renders the response from the other columns; returns None if they are not sufficient."""
    otherwise: DirectQuery | None = None
    """The statement to execute if the result of this one is not sufficient."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One operation of the API."""

    method: str
    path: str
    access: Access
    summary: str
    handler: TransactionHandler | AsyncHandler
    response: type[BaseModel] | None = None
    """None if the response is not JSON."""
    media_type: str = "application/json"
    query: type[QueryModel] = QueryModel
    body: type[BodyModel] | None = None
    body_required: bool = True
    is_form: bool = False
    """Whether the body is a form (`application/x-www-form-urlencoded`)."""
    is_brief: bool = False
    """Whether the handler only loads a few rows by their keys, so it does not need a thread."""
    direct: Callable[[DirectRequest, ApiServices], DirectQuery | None] | None = None
    """Returns the statement that answers a request; None if only the handler can answer it.

    The statement and the handler must give the same response to the same request.
    """
    may_lag: bool = False
    """Whether a replica can answer the request; never true if the response shows credentials."""
    prepare: Callable[[RequestContext], Awaitable[Any]] | None = None
    """Work before the transaction, such as hashing."""
    action: str | None = None
    """Action in the audit log."""
    role: ConsoleRole | None = None
    """Minimum role for using the endpoint in the console; if None, `console_role` decides."""
    idempotent: bool = False
    """Whether the endpoint accepts Idempotency-Key."""
    is_conditional: bool = False
    """Whether the endpoint accepts If-Match, which the handler must check."""
    shows_secret: bool = False
    """Whether the response contains a secret that is shown only once."""
    status: int = 200
    problems: tuple[ProblemType | OAuthProblem, ...] = ()
    """Problems other than those that the access, the query and the body can cause."""
    other_statuses: tuple[int, ...] = ()
    """Other statuses with the same response."""

    @property
    def console_role(self) -> ConsoleRole:
        """Minimum role for using the endpoint in the console.

        If the endpoint does not declare a role, viewers can use it if it is a GET endpoint that is
        public or accepts API keys. Otherwise, only admins can use it.
        """
        if self.role is not None:
            return self.role
        is_read = self.method == "GET" and self.access in {*Scope, AccessRole.PUBLIC}
        return ConsoleRole.VIEWER if is_read else ConsoleRole.ADMIN
