"""Tools that every plugin object receives."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Protocol

from structlog.typing import FilteringBoundLogger

from tocsin.clock import Clock
from tocsin.errors import Misconfigured
from tocsin.model import Entity, IncidentRecord, Neighborhood, Node, Sighting, Window
from tocsin.observables import Environment


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpResponse:
    """A server's response; `body` is truncated at the requested limit."""

    status: int
    headers: Mapping[str, str]
    """Header names are case-insensitive."""
    body: bytes
    truncated: bool


class HttpClient(Protocol):
    """HTTP client that limits response sizes and times and ignores redirects and cookies."""

    def check_url(self, url: str) -> None:
        """Check without network access whether requests to `url` are allowed.

        Raises `Misconfigured` with the reason if they are not allowed.
        """
        ...

    async def vet_url(self, url: str) -> None:
        """Check whether requests to `url`, and to the addresses that it resolves to, are allowed.

        Raises `Misconfigured` with the reason if they are not allowed. A host name that does not
        resolve yet is allowed.
        """
        ...

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
        timeout: timedelta = timedelta(seconds=20),
        limit: int = 16_384,
    ) -> HttpResponse:
        """Send a request and return the response, with its body truncated at `limit` bytes.

        Raises `Misconfigured` if the address is not allowed, and `TryLater` if the server cannot be
        reached or does not respond in time.
        """
        ...


class Sockets(Protocol):
    """Sockets for protocols other than HTTP, limited to the addresses that Tocsin allows."""

    @property
    def tls(self) -> ssl.SSLContext:
        """The TLS context, which verifies certificates and names.

        The context uses the settings `ca_file`, `client_certificate` and `client_key`.
        """
        ...

    async def connect(
        self,
        host: str,
        port: int,
        *,
        plain: bool = False,
        timeout: timedelta = timedelta(seconds=20),
    ) -> socket.socket:
        """Return a connected non-blocking socket, which the caller closes.

        Set `plain` if you do not start TLS on the socket. Without TLS, Tocsin allows a public
        address only if the address is inside `allow_networks`. Raises `Misconfigured` if the
        address is not allowed, and `TryLater` if nothing responds.
        """
        ...


class NoSockets:
    """Sockets without a network."""

    @property
    def tls(self) -> ssl.SSLContext:
        """A TLS context with the system's certificate authorities."""
        return ssl.create_default_context()

    async def connect(
        self,
        host: str,
        port: int,
        *,
        plain: bool = False,  # noqa: ARG002 - the protocol's
        timeout: timedelta = timedelta(seconds=20),  # noqa: ARG002
    ) -> socket.socket:
        """Raise `Misconfigured`."""
        raise Misconfigured(f"{host}, port {port}: no network available")


class AttemptLog(Protocol):
    """Access to the results of earlier delivery attempts."""

    async def last_answer(self, delivery_id: str) -> bytes:
        """Return the latest `response` from the attempts since the delivery last succeeded.

        Returns an empty value if there is no such response. To keep data for its next attempt, a
        channel can put the data into the `response` of an error.
        """
        ...


class NoAttempts:
    """Attempt log without earlier attempts."""

    async def last_answer(self, delivery_id: str) -> bytes:  # noqa: ARG002 - the protocol's
        """Return an empty response."""
        return b""


class Knowledge(Protocol):
    """Read access to the incident history and the entity graph."""

    async def sightings(self, entities: Sequence[Entity]) -> Sequence[Sighting]:
        """Return the sightings of each entity, in order."""
        ...

    async def incidents_about(
        self, entities: Sequence[Entity], window: Window | None = None, limit: int = 50
    ) -> Sequence[IncidentRecord]:
        """Return the latest incidents that involve any of the entities, newest first."""
        ...

    async def neighbors(self, entity: Entity, depth: int = 1, limit: int = 100) -> Neighborhood:
        """Return the graph around an entity, up to `depth` steps away (1 to 3)."""
        ...


class NoKnowledge:
    """Knowledge without any data."""

    async def sightings(self, entities: Sequence[Entity]) -> Sequence[Sighting]:
        """Return an empty sighting for each entity."""
        return [Sighting(entity=entity, incident_count=0) for entity in entities]

    async def incidents_about(
        self,
        entities: Sequence[Entity],  # noqa: ARG002 - the protocol's
        window: Window | None = None,  # noqa: ARG002
        limit: int = 50,  # noqa: ARG002
    ) -> Sequence[IncidentRecord]:
        """Return no incidents."""
        return ()

    async def neighbors(
        self,
        entity: Entity,
        depth: int = 1,  # noqa: ARG002 - the protocol's
        limit: int = 100,  # noqa: ARG002
    ) -> Neighborhood:
        """Return a neighborhood that contains only the entity."""
        return Neighborhood(nodes=(Node.of(entity),), edges=(), complete=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """Tools that Tocsin passes to every plugin object."""

    name: str
    """The name of the object's table in `plugins.toml`, such as `edge` for [providers.edge]."""
    http: HttpClient
    clock: Clock
    log: FilteringBoundLogger
    sockets: Sockets = field(default_factory=NoSockets)
    public_url: str = ""
    """The public URL of this installation of Tocsin, without a trailing slash."""
    environment: Environment = field(default_factory=Environment)
    """Tells which entities are internal or well known."""
    knowledge: Knowledge = field(default_factory=NoKnowledge)
    """What Tocsin knows about entities; only for enrichers, empty for all other plugins."""
    attempts: AttemptLog = field(default_factory=NoAttempts)
    """Results of earlier delivery attempts; only for channels, empty for all other plugins."""
