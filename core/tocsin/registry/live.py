"""Making the configured providers and channels, each with what it needs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import structlog

from tocsin.clock import Clock
from tocsin.errors import ConfigurationError
from tocsin.hookspecs import Channel, Provider, Tools
from tocsin.net import GuardedClient, open_client
from tocsin.registry.configuration import Configuration, Configured, not_strict
from tocsin.registry.loading import Absent

_START_SECONDS = 60
_log = structlog.get_logger()
Kind = TypeVar("Kind", Provider, Channel)


@dataclass(slots=True)
class LivePlugins:
    """The providers and channels that are running, and what was left out; `close` it when done."""

    providers: dict[str, Provider] = field(default_factory=dict)
    channels: dict[str, Channel] = field(default_factory=dict)
    absent: list[Absent] = field(default_factory=list)
    clients: list[GuardedClient] = field(default_factory=list)

    async def close(self) -> None:
        """Close every connection that the plugins had."""
        await asyncio.gather(*(client.close() for client in self.clients))


async def start_plugins(configuration: Configuration, clock: Clock) -> LivePlugins:
    """Return the live plugins; one that fails to start is left out with its reason.

    Raises ConfigurationError where the configuration is strict and something was left out.
    """
    live = LivePlugins(absent=list(configuration.absent))
    live.providers.update(await _start_all("providers", configuration.providers, clock, live))
    live.channels.update(await _start_all("destinations", configuration.destinations, clock, live))
    if configuration.strict and live.absent:
        await live.close()
        raise ConfigurationError([not_strict(configuration.path, absent) for absent in live.absent])
    return live


async def _start_all(
    section: str, configured: Sequence[Configured[Kind]], clock: Clock, live: LivePlugins
) -> Iterable[tuple[str, Kind]]:
    started = []
    for item in configured:
        if item.kind is None:
            continue
        try:
            started.append((item.name, await _start(item, item.kind, clock, live)))
        except Exception as error:  # noqa: BLE001 - whatever a plugin does costs only itself
            reason = f"it could not be started: {error!r}"
            live.absent.append(Absent(f"{section}.{item.name}", reason))
            _log.warning("left out", section=section, name=item.name, exc_info=True)
    return started


async def _start(item: Configured[Kind], kind: type[Kind], clock: Clock, live: LivePlugins) -> Kind:
    allowed = getattr(item.settings, "allow_networks", ())
    client = open_client(allow_networks=allowed)
    live.clients.append(client)
    log = structlog.get_logger().bind(name=item.name)
    made = kind(item.settings, Tools(name=item.name, http=client, clock=clock, log=log))
    async with asyncio.timeout(_START_SECONDS):
        await made.start()
    return made
