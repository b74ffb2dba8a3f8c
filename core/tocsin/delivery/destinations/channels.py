"""Live channels of destinations, and the channel for observer plugins."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tocsin.delivery.destinations.lifecycle import DestinationSpec
from tocsin.delivery.destinations.repository import Destination
from tocsin.errors import OperatorError, Refused
from tocsin.fields import SettingsOrigin
from tocsin.hookspecs import Channel, Tools
from tocsin.model import Delivery, DeliveryType, EventType, Health, Receipt
from tocsin.registry import Configuration, LivePlugin, ManagedBy, PluginFactory
from tocsin.validation import explain_errors

OBSERVER_PREFIX = "hook:"
"""Prefix of observers' destination names; no other name can contain a colon."""
_THREADS = 4
Hooks = Mapping[str, Callable[..., Any]]


HOOKS: Mapping[DeliveryType, str] = {
    **dict.fromkeys(map(DeliveryType, EventType), "tocsin_event"),
    DeliveryType.INCIDENT_CHANGED: "tocsin_incident_changed",
    DeliveryType.INVESTIGATION_FINISHED: "tocsin_investigation_finished",
}
"""The hook that receives each event type."""


class ObserverChannel(Channel):
    """Passes events and changes to a plugin's hooks.

    Each such plugin is a separate destination, so a slow plugin does not delay others. Events go
    through the queue. They are delivered once across all nodes, with retries, and are accounted
    for like all deliveries.
    """

    def __init__(self, settings: Any, tools: Tools, hooks: Hooks) -> None:
        super().__init__(settings, tools)
        self._hooks = hooks
        # separate threads: a hook that hangs keeps its thread after the timeout
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix=f"tocsin-{tools.name}")

    async def check(self) -> Health:
        """Report the plugin as available, without calling it."""
        return Health(detail="receives events")

    async def deliver(self, delivery: Delivery) -> Receipt:
        """Call the hook in a thread, and await the coroutine if it returns one."""
        name = HOOKS[DeliveryType(delivery.event.event_type)]
        if (hook := self._hooks.get(name)) is None:
            raise Refused(f"the plugin no longer implements the hook `{name}`")

        def call() -> object:  # uvloop does not run a coroutine function in a thread
            return hook(event=delivery.event)

        result = await asyncio.get_running_loop().run_in_executor(self._threads, call)
        if inspect.isawaitable(result):
            await result
        return Receipt()

    async def follow(self, delivery: Delivery) -> Receipt:
        """Call the hook for the change, as for an event."""
        return await self.deliver(delivery)


Decrypt = Callable[[bytes], bytes]
Network = IPv4Network | IPv6Network
DestinationLike = Destination | DestinationSpec
"""A stored destination, or the specification of a new one."""


class ChannelFactory:
    """Creates the channels of destinations from the plugins of this node."""

    def __init__(
        self,
        configuration: Configuration,
        maker: PluginFactory,
        decrypt: Decrypt,
        allow_networks: Sequence[Network] = (),
    ) -> None:
        self.kinds: Mapping[str, type[Channel]] = configuration.channels
        self.receivers = configuration.receivers
        """Receivers that have templates."""
        self.providers = list(configuration.file.providers)
        """Names of the configured providers."""
        self.allow_networks = allow_networks
        """Private networks that destinations created over HTTP can reach."""
        self._observers = configuration.observers
        self._folder: Path = configuration.path.parent
        self._maker = maker
        self._decrypt = decrypt

    @property
    def public_url(self) -> str:
        """Tocsin's public URL, as in the channels' tools."""
        return self._maker.public_url

    async def make(self, destination: DestinationLike) -> LivePlugin[Channel]:
        """Return the started channel; OperatorError if this node cannot provide it."""
        if destination.managed_by is ManagedBy.PLUGIN:
            return await self._observe(destination)
        kind, settings = self.settle(destination)
        return await self._maker.make(destination.name, kind, settings)

    def settle(self, destination: DestinationLike) -> tuple[type[Channel], Channel.Settings]:
        """Return the channel class and its settings; raises OperatorError as `make` does."""
        if (kind := self.kinds.get(destination.plugin)) is None:
            raise OperatorError(f"plugin {destination.plugin!r} is not available on this node")
        table = {
            "plugin": destination.plugin,
            **destination.settings,
            **self.secrets(destination),
        }
        settings = validate_settings(kind, table, self._origin(destination))
        self._confine(destination, settings)
        return kind, settings

    def secrets(self, destination: DestinationLike) -> dict[str, Any]:
        """Return the decrypted secrets that were set over HTTP, by field."""
        if destination.secrets is None:
            return {}
        secrets: dict[str, Any] = json.loads(self._decrypt(destination.secrets))
        return secrets

    async def _observe(self, destination: DestinationLike) -> LivePlugin[Channel]:
        if (hooks := self._observers.get(destination.plugin)) is None:
            raise OperatorError(f"plugin {destination.plugin!r} is not available on this node")
        settings = ObserverChannel.Settings(plugin=destination.plugin)
        return await self._maker.make(
            destination.name, partial(ObserverChannel, hooks=hooks), settings
        )

    def _origin(self, destination: DestinationLike) -> SettingsOrigin:
        return SettingsOrigin(self._folder if destination.managed_by is ManagedBy.FILE else None)

    def _confine(self, destination: DestinationLike, settings: Channel.Settings) -> None:
        """Raise OperatorError if a destination managed over HTTP allows forbidden networks."""
        if destination.managed_by is not ManagedBy.API:
            return
        if found := find_outside(settings.allow_networks, self.allow_networks):
            networks = ", ".join(map(str, found.values()))
            raise OperatorError(
                f"allow_networks: found {networks}, outside the networks in TOCSIN_ALLOW_NETWORKS"
            )


def find_outside(networks: Iterable[Network], allowed: Sequence[Network]) -> dict[int, Network]:
    """Return the networks outside the allowed ones, by index."""
    return {
        place: network
        for place, network in enumerate(networks)
        if not any(_is_inside(network, wider) for wider in allowed)
    }


def _is_inside(network: Network, wider: Network) -> bool:
    return network.version == wider.version and network.subnet_of(wider)  # type: ignore[arg-type]


def validate_settings(
    kind: type[Channel], table: Mapping[str, Any], origin: SettingsOrigin
) -> Channel.Settings:
    """Return the settings; OperatorError lists every problem."""
    try:
        return kind.Settings.model_validate(dict(table), context=origin.context())
    except ValidationError as error:
        mistakes = explain_errors(error, kind.Settings)
        problems = (f"{'.'.join(mistake.path)}: {mistake.words}" for mistake in mistakes)
        raise OperatorError("\n".join(problems)) from None
