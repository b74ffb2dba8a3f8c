"""Construction and start of configured plugins."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, cast

import structlog

from tocsin.clock import Clock
from tocsin.errors import ConfigurationError, TocsinError
from tocsin.fields import CERTIFICATE_FILES, PluginSettings
from tocsin.hookspecs import (
    AttemptLog,
    Channel,
    Enricher,
    Intake,
    Investigator,
    Knowledge,
    NoAttempts,
    NoIntake,
    NoKnowledge,
    Provider,
    Tools,
)
from tocsin.logs import RedactedLog
from tocsin.net import GuardedClient, open_client, open_sockets
from tocsin.observables import Environment
from tocsin.redaction import Redactor, list_secret_values
from tocsin.registry.configuration import Configuration, strict_problem
from tocsin.registry.loader import AbsentPlugin
from tocsin.registry.parser import ConfiguredPlugin, Kind, table_path

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

_START_SECONDS = 60
_NET_OPTIONS = ("allow_networks", *CERTIFICATE_FILES)
_log = structlog.get_logger()


Made = Provider | Channel | Enricher | Investigator | Intake


@dataclass(frozen=True, slots=True)
class LivePlugin(Generic[Kind]):
    """A started plugin object with its client."""

    plugin: Kind
    client: GuardedClient

    async def close(self) -> None:
        """Close its connections."""
        await self.client.close()


class PluginFactory:
    """Creates the objects that plugins offer, with their tools."""

    def __init__(
        self,
        clock: Clock,
        public_url: str = "",
        environment: Environment | None = None,
        knowledge: Knowledge | None = None,
        attempts: AttemptLog | None = None,
    ) -> None:
        self._clock = clock
        self.public_url = public_url
        self._environment = environment or Environment()
        self._knowledge = knowledge or NoKnowledge()
        self._attempts = attempts or NoAttempts()

    async def make(
        self,
        name: str,
        kind: Callable[[Any, Tools], Kind],
        settings: PluginSettings,
        *,
        allow_hosts: Collection[str] = (),
    ) -> LivePlugin[Kind]:
        """Return the created and started object; raises if that fails.

        `allow_hosts` may be reached even if they are private.
        """
        found = ((option, getattr(settings, option, None)) for option in _NET_OPTIONS)
        options = {
            "allow_hosts": allow_hosts,
            **{option: value for option, value in found if value},
        }
        client = open_client(**options, proxy=getattr(settings, "proxy", None))
        redactor = Redactor(list_secret_values(settings))
        log = RedactedLog(structlog.get_logger().bind(name=name), redactor)
        tools = Tools(
            name=name,
            http=client,
            sockets=open_sockets(**options),
            clock=self._clock,
            log=cast("FilteringBoundLogger", log),
            public_url=self.public_url,
            environment=self._environment,
            knowledge=self._knowledge if _matches_base(Enricher, kind) else NoKnowledge(),
            attempts=self._attempts if _matches_base(Channel, kind) else NoAttempts(),
        )
        try:
            made = kind(settings, tools)
            _expect_kept(made, settings, tools)
            async with asyncio.timeout(_START_SECONDS):
                await made.start()
            if isinstance(made, Channel):
                redactor.add(made.list_secrets())
            if isinstance(made, Provider):
                _expect_streams(made)
        except BaseException:
            await client.close()
            raise
        return LivePlugin(made, client)


def _matches_base(base: type[Made], kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, base)


def _expect_kept(made: Made, settings: PluginSettings, tools: Tools) -> None:
    """Raise TypeError, for the plugin's author, if its base class was not initialized."""
    kept = getattr(made, "tools", None) is tools and getattr(made, "settings", None) is settings
    if not kept:
        place = f"{type(made).__name__}.__init__"
        raise TypeError(f"call `super().__init__(settings, tools)` in `{place}`")


def _expect_streams(provider: Provider) -> None:
    """Raise TypeError, for the plugin's author, if streams are not a tuple of names."""
    names: object = provider.streams()
    match names:
        case [*several] if all(isinstance(name, str) for name in several):
            return
    place = f"{type(provider).__name__}.streams"
    raise TypeError(f"return a tuple of names from `{place}`, not {names!r}")


@dataclass(slots=True)
class LivePlugins:
    """Running plugins, and the plugins that were left out; call `close` when done."""

    providers: dict[str, Provider] = field(default_factory=dict)
    channels: dict[str, Channel] = field(default_factory=dict)
    enrichers: dict[str, Enricher] = field(default_factory=dict)
    investigator: Investigator | None = None
    intake: Intake = field(default_factory=NoIntake)
    absent: list[AbsentPlugin] = field(default_factory=list)
    clients: dict[str, GuardedClient] = field(default_factory=dict)
    """Their clients, by the path of their tables."""

    def find_objects(self, plugin: str) -> dict[str, Made]:
        """Return the running objects of a plugin, except its channels, by table."""
        objects: dict[str, Made] = {}
        objects |= {f"providers.{name}": made for name, made in self.providers.items()}
        objects |= {f"enrichers.{name}": made for name, made in self.enrichers.items()}
        if self.investigator is not None:
            objects["investigator"] = self.investigator
        if not isinstance(self.intake, NoIntake):
            objects["intake"] = self.intake
        return {path: made for path, made in objects.items() if made.settings.plugin == plugin}

    async def close(self) -> None:
        """Close every connection of the plugins."""
        await self.intake.close()
        await asyncio.gather(*(client.close() for client in self.clients.values()))


async def start_providers(configuration: Configuration, maker: PluginFactory) -> LivePlugins:
    """Return the started providers and intake; one that fails to start is left out with its reason.

    Raises ConfigurationError if the configuration is strict and something was left out.
    """
    live = LivePlugins(absent=list(configuration.absent))
    live.providers.update(await _start_all("providers", configuration.providers, maker, live))
    intakes = [configuration.intake] if configuration.intake else []
    for _, intake in await _start_all("intake", intakes, maker, live):
        live.intake = intake
    await _refuse_absent(configuration, live)
    return live


async def start_investigation_plugins(
    configuration: Configuration, maker: PluginFactory, live: LivePlugins
) -> None:
    """Add the started enrichers and the investigator, as `start_providers` does."""
    live.enrichers.update(await _start_all("enrichers", configuration.enrichers, maker, live))
    chosen = [configuration.investigator] if configuration.investigator else []
    for _, investigator in await _start_all("investigator", chosen, maker, live):
        live.investigator = investigator
    await _refuse_absent(configuration, live)


async def start_plugins(configuration: Configuration, maker: PluginFactory) -> LivePlugins:
    """Start everything that the file configures, as `start_providers` does."""
    live = await start_providers(configuration, maker)
    await start_investigation_plugins(configuration, maker, live)
    live.channels.update(await _start_all("destinations", configuration.destinations, maker, live))
    await _refuse_absent(configuration, live)
    return live


async def _refuse_absent(configuration: Configuration, live: LivePlugins) -> None:
    if configuration.strict and live.absent:
        await live.close()
        raise ConfigurationError(
            [strict_problem(configuration.path, absent) for absent in live.absent]
        )


async def _start_all(
    section: str,
    configured: Sequence[ConfiguredPlugin[Kind]],
    maker: PluginFactory,
    live: LivePlugins,
) -> Iterable[tuple[str, Kind]]:
    started = []
    for item in configured:
        if item.kind is None:
            continue
        made = await start_plugin(section, item, maker)
        if isinstance(made, AbsentPlugin):
            live.absent.append(made)
        else:
            live.clients[table_path(section, item.name)] = made.client
            started.append((item.name, made.plugin))
    return started


async def start_plugin(
    section: str, item: ConfiguredPlugin[Kind], maker: PluginFactory
) -> LivePlugin[Kind] | AbsentPlugin:
    """Return the started plugin of a table, or why it could not be started."""
    assert item.kind is not None  # noqa: S101 - the caller knows what to do without one
    hosts = () if section == "destinations" else item.settings.own_hosts()
    try:
        return await maker.make(item.name, item.kind, item.settings, allow_hosts=hosts)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a failing plugin costs only itself
        _log.warning("plugin skipped", section=section, name=item.name, exc_info=True)
        reason = f"could not be started: {_describe_error(error)}"
        return AbsentPlugin(table_path(section, item.name), reason)


def _describe_error(error: BaseException) -> str:
    match error:
        case TocsinError():
            return str(error)
        case TimeoutError():
            return f"not ready within {_START_SECONDS} seconds"
    return ": ".join(filter(None, (type(error).__name__, str(error))))
