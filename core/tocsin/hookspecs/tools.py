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
    """What a server answered; `body` holds no more than the limit that was asked for."""

    status: int
    headers: Mapping[str, str]
    """Names match in any case."""
    body: bytes
    truncated: bool


class HttpClient(Protocol):
    """The way to the network: guarded, bounded, without redirects or cookies."""

    def check_url(self, url: str) -> None:
        """Return where `url` may be requested, as far as that can be told without the network.

        Raises `Misconfigured`, which says what is wrong with it.
        """
        ...

    async def vet_url(self, url: str) -> None:
        """Return where `url` may be requested, also by what its name leads to at this moment.

        Raises `Misconfigured`, which says what is wrong with it. A name that leads nowhere yet
        passes.
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
        """Return the answer, its body cut at `limit` bytes.

        Raises `Misconfigured` where the address is one that may not be reached, and `TryLater`
        where the far side could not be reached or did not answer in time.
        """
        ...


class Sockets(Protocol):
    """The way to the network for what is not HTTP, guarded as `HttpClient` is."""

    @property
    def tls(self) -> ssl.SSLContext:
        """What to encrypt a connection with: certificates and names are verified.

        It trusts what the settings `ca_file` and `client_certificate` say.
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
        """Return a connected socket that does not block, for the caller to close.

        `plain` says that nothing will be encrypted: then only `allow_networks` are reached. Raises
        `Misconfigured` where the address may not be reached, and `TryLater` where nothing answers.
        """
        ...


class NoSockets:
    """The sockets of what reaches nothing."""

    @property
    def tls(self) -> ssl.SSLContext:
        """What verifies by the system's authorities."""
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
        raise Misconfigured(f"{host}, port {port}: there is no network here")


class AttemptLog(Protocol):
    """What came of earlier attempts at deliveries."""

    async def last_answer(self, delivery_id: str) -> bytes:
        """Return the `response` of the last attempt that had one, since the delivery last arrived.

        Empty where there is none. What a channel wants to know at the next attempt, it says there.
        """
        ...


class NoAttempts:
    """The log of a service that has tried nothing yet."""

    async def last_answer(self, delivery_id: str) -> bytes:  # noqa: ARG002 - the protocol's
        """Return nothing."""
        return b""


class Knowledge(Protocol):
    """What is known here of entities: reads of the incident history and of the graph."""

    async def sightings(self, entities: Sequence[Entity]) -> Sequence[Sighting]:
        """Return what is known of each, in their order."""
        ...

    async def incidents_about(
        self, entities: Sequence[Entity], window: Window | None = None, limit: int = 50
    ) -> Sequence[IncidentRecord]:
        """Return the latest incidents that involve any of them, the newest first."""
        ...

    async def neighbours(self, entity: Entity, depth: int = 1, limit: int = 100) -> Neighborhood:
        """Return the graph around an entity, `depth` steps from it (1 to 3)."""
        ...


class NoKnowledge:
    """The knowledge of a service that has seen nothing yet."""

    async def sightings(self, entities: Sequence[Entity]) -> Sequence[Sighting]:
        """Return that each was never seen."""
        return [Sighting(entity=entity, incident_count=0) for entity in entities]

    async def incidents_about(
        self,
        entities: Sequence[Entity],  # noqa: ARG002 - the protocol's
        window: Window | None = None,  # noqa: ARG002
        limit: int = 50,  # noqa: ARG002
    ) -> Sequence[IncidentRecord]:
        """Return none."""
        return ()

    async def neighbours(
        self,
        entity: Entity,
        depth: int = 1,  # noqa: ARG002 - the protocol's
        limit: int = 100,  # noqa: ARG002
    ) -> Neighborhood:
        """Return the entity alone."""
        return Neighborhood(nodes=(Node.of(entity),), edges=(), complete=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """What everything that a plugin offers is handed; it needs nothing global."""

    name: str
    """The name of its table in `plugins.toml`, such as `edge` for [providers.edge]."""
    http: HttpClient
    clock: Clock
    log: FilteringBoundLogger
    sockets: Sockets = field(default_factory=NoSockets)
    public_url: str = ""
    """Where others reach this Tocsin, without a slash at the end."""
    environment: Environment = field(default_factory=Environment)
    """Tells what is internal and what is well known."""
    knowledge: Knowledge = field(default_factory=NoKnowledge)
    """What is known here; of enrichers alone, others are handed nothing."""
    attempts: AttemptLog = field(default_factory=NoAttempts)
    """What came of earlier attempts; of channels alone."""
