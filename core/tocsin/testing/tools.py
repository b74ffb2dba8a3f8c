"""Tools, settings and clients for a plugin under test."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import entry_points
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias, TypeVar

import structlog

from tocsin.clock import Clock
from tocsin.errors import Misconfigured
from tocsin.fields import SettingsOrigin
from tocsin.hookspecs import (
    AttemptLog,
    Channel,
    Enricher,
    HttpClient,
    HttpResponse,
    Intake,
    Investigator,
    Knowledge,
    NoAttempts,
    NoKnowledge,
    NoSockets,
    Provider,
    Sockets,
    Tools,
)
from tocsin.net import GuardedClient, open_client, open_sockets
from tocsin.observables import Environment
from tocsin.testing.clock import ManualClock

Kind: TypeAlias = (
    type[Provider] | type[Channel] | type[Enricher] | type[Investigator] | type[Intake]
)
P = TypeVar("P", bound=Provider)
E = TypeVar("E", bound=Enricher)


def loopback_client() -> GuardedClient:
    """Return an HTTP client for tests that can reach this machine.

    After the test, close the client with `await client.close()`.
    """
    return open_client(allow_hosts=["127.0.0.1"])


def loopback_sockets(ca_file: str | None = None) -> Sockets:
    """Return sockets for tests that can reach this machine.

    `ca_file` replaces the system's certificate authorities.
    """
    return open_sockets(allow_hosts=["127.0.0.1"], ca_file=ca_file)


def make_tools(
    http: HttpClient | None = None,
    name: str = "test",
    clock: Clock | None = None,
    *,
    environment: Environment | None = None,
    knowledge: Knowledge | None = None,
    sockets: Sockets | None = None,
    attempts: AttemptLog | None = None,
) -> Tools:
    """Return the tools for a plugin object.

    By default, the tools have a `ManualClock`, but no network access, internal entities, knowledge
    or earlier attempts.
    """
    return Tools(
        name=name,
        http=http or _NoNetwork(),
        clock=clock or ManualClock(),
        log=structlog.get_logger().bind(plugin=name),
        environment=environment or Environment(),
        knowledge=knowledge or NoKnowledge(),
        sockets=sockets or NoSockets(),
        attempts=attempts or NoAttempts(),
    )


@asynccontextmanager
async def open_provider(
    kind: type[P], *, clock: Clock | None = None, name: str = "test", **settings: Any
) -> AsyncGenerator[P, None]:
    """Yield a started provider of this class, with a client that can reach this machine.

    Pass the settings as you would write them in `plugins.toml`, but secrets as plain text.
    """
    http = loopback_client()
    try:
        provider = kind(make_settings(kind, name, **settings), make_tools(http, name, clock))
        await provider.start()
        yield provider
    finally:
        await http.close()


@asynccontextmanager
async def open_enricher(
    kind: type[E],
    *,
    clock: Clock | None = None,
    name: str = "test",
    environment: Environment | None = None,
    knowledge: Knowledge | None = None,
    **settings: Any,
) -> AsyncGenerator[E, None]:
    """Yield a started enricher of this class, with a client that can reach this machine.

    Pass the settings as you would write them in `plugins.toml`, but secrets as plain text.
    """
    http = loopback_client()
    tools = make_tools(http, name, clock, environment=environment, knowledge=knowledge)
    try:
        enricher = kind(make_settings(kind, name, **settings), tools)
        await enricher.start()
        yield enricher
    finally:
        await http.close()


def make_settings(kind: Kind, name: str = "test", **settings: Any) -> Any:
    """Return the validated settings of a plugin class.

    Pass the settings as you would write them in `plugins.toml`, but secrets as plain text.
    """
    with TemporaryDirectory() as folder:
        secrets = (part for part in settings if part in kind.Settings.secret_fields())
        given = {"plugin": name, **settings}
        given |= {part: _to_reference(settings[part], Path(folder)) for part in secrets}
        origin = SettingsOrigin(Path(folder))
        return kind.Settings.model_validate(given, context=origin.context())


def _to_reference(value: Any, folder: Path) -> Any:
    """Return a reference to a file with the secret; for a table, one for each member."""
    if isinstance(value, Mapping):
        return {name: _to_reference(member, folder) for name, member in value.items()}
    if not isinstance(value, str):
        return value
    path = folder / str(len(list(folder.iterdir())))
    path.write_text(value, encoding="utf-8")
    return {"file": path.name}


class _NoNetwork:
    """HTTP client without a network."""

    def check_url(self, url: str) -> None:
        raise _raise_unreachable(url)

    async def vet_url(self, url: str) -> None:
        raise _raise_unreachable(url)

    async def request(self, method: str, url: str, **_options: Any) -> HttpResponse:  # noqa: ARG002
        raise _raise_unreachable(url)


def _raise_unreachable(url: str) -> Misconfigured:
    return Misconfigured(f"{url}: no network; pass a client to `make_tools`")


def installed_channel(plugin: str) -> type[Channel]:
    """Return the channel of an installed plugin, such as `ticketing`, or raise KeyError."""
    channel: type[Channel] = _module(plugin).tocsin_channels()
    return channel


def shipped_templates() -> Sequence[Path]:
    """Return the directories of the templates that ship with Tocsin."""
    return list(_module("templates").tocsin_template_paths())


def _module(plugin: str) -> Any:
    return entry_points(group="tocsin.plugins")[plugin].load()
