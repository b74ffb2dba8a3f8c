"""Inventory of installed plugins: offers, requirements and reasons for absence."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from pydantic import BaseModel

from tocsin.errors import OperatorError
from tocsin.fields import PluginSettings
from tocsin.hookspecs import Channel, ConsolePage, Enricher, Intake, Investigator, Provider, Route
from tocsin.registry.entry_points import (
    DEFAULT_INVESTIGATOR,
    ON_BY_DEFAULT,
    InstalledPlugin,
    describe_unknown,
    index_by_name,
)
from tocsin.registry.loader import PluginOffers, load_plugins
from tocsin.registry.parser import BASES
from tocsin.registry.plugins_file import PluginsFile
from tocsin.registry.settings_schema import SettingDescription, list_settings, settings_schema
from tocsin.validation import suggest_nearest


@dataclass(frozen=True, slots=True)
class OfferedKind:
    """A kind of provider, channel, enricher or investigator that a plugin offers."""

    section: str
    """Section of `plugins.toml` that uses it: `providers`, `destinations` and so on."""
    name: str
    summary: str
    settings: tuple[SettingDescription, ...]
    schema: Mapping[str, Any]
    """JSON Schema of the settings."""
    capabilities: tuple[str, ...] = ()
    streams: tuple[str, ...] | None = ()
    """With default settings; None if they depend on the settings."""
    permissions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PluginDescription:
    """Description of a plugin; from its metadata alone if it cannot be used."""

    name: str
    distribution: str
    version: str
    enabled: bool
    hooks: tuple[str, ...]
    kinds: tuple[OfferedKind, ...]
    used_by: tuple[str, ...]
    """Tables of `plugins.toml` that name it, such as `providers.edge`."""
    absent: str | None
    """Reason and remedy if this service does not have it; None otherwise."""
    broken: bool
    """Whether enabling it would not help."""


async def describe_plugin(
    name: str, file: PluginsFile, installed: Sequence[InstalledPlugin]
) -> PluginDescription:
    """Return the description of a plugin, which is imported even if not enabled.

    Raises OperatorError for an unknown name.
    """
    known = index_by_name(installed)
    found = known.get(name, [])
    if not found:
        raise OperatorError(explain_absence(name, known, file))
    offers = PluginOffers() if len(found) > 1 else await load_plugins(found)
    return _build_description(name, file, known, offers)


def describe_plugins(
    file: PluginsFile, installed: Sequence[InstalledPlugin], offers: PluginOffers
) -> list[PluginDescription]:
    """Return the description of each installed plugin, by name; from metadata if not enabled.

    `offers` are those of the enabled plugins; nothing is imported.
    """
    known = index_by_name(installed)
    return [
        _build_description(name, file, known, offers if file.enables(name) else None)
        for name in known
    ]


def _build_description(
    name: str,
    file: PluginsFile,
    known: Mapping[str, Sequence[InstalledPlugin]],
    loaded: PluginOffers | None,
) -> PluginDescription:
    found = known[name]
    shared, offers = len(found) > 1, loaded or PluginOffers()
    flaw = None if shared or loaded is None else _find_flaw(name, offers)
    return PluginDescription(
        name=name,
        distribution=" and ".join(plugin.distribution for plugin in found),
        version=" and ".join(plugin.version for plugin in found),
        enabled=file.enables(name),
        hooks=offers.hooks.get(name, ()),
        kinds=tuple(_list_kinds(name, offers)),
        used_by=tuple(_list_users(name, file)),
        absent=flaw or explain_absence(name, known, file),
        broken=shared or flaw is not None,
    )


def explain_absence(
    name: str, known: Mapping[str, Sequence[InstalledPlugin]], file: PluginsFile
) -> str | None:
    """Return why a plugin is absent, from metadata and `plugins.toml`; None if it is not."""
    match known.get(name, []):
        case []:
            names = ", ".join(known)
            nearest = suggest_nearest(name, list(known))
            return f"{describe_unknown(name)}; use one of: {names}{nearest}"
        case [_]:
            return None if file.enables(name) else _how_to_enable(name, file)
        case several:
            names = " and ".join(plugin.distribution for plugin in several)
            return f"{names} provide a plugin of this name; uninstall one of them"


def _how_to_enable(name: str, file: PluginsFile) -> str:
    if name in ON_BY_DEFAULT:
        return f"it is disabled; to enable it, remove {name!r} from `disabled` in plugins.toml"
    line = json.dumps([*file.enabled, name])
    return f"it is not enabled; to enable it, set `enabled = {line}` in plugins.toml"


def _find_flaw(name: str, offers: PluginOffers) -> str | None:
    """Return why a plugin with a unique name cannot be used; None if it can."""
    if name in offers.absent:
        return offers.absent[name].reason
    if not offers.hooks.get(name):
        return "it does not implement any hook; mark its hooks with `@hookimpl`"
    for kind, _ in _list_offered(name, offers):
        if lacking := sorted(getattr(kind, "__abstractmethods__", ())):
            return f"its class is abstract, because it does not implement {', '.join(lacking)}"
    return None


Offered = type[Provider | Channel | Enricher | Investigator | Intake]


def _list_offered(name: str, offers: PluginOffers) -> Iterator[tuple[Offered, str]]:
    """Yield each kind that a plugin offers, and the section that uses it."""
    if name in offers.providers:
        yield offers.providers[name], "providers"
    if name in offers.channels:
        yield offers.channels[name], "destinations"
    for enricher in offers.enrichers.get(name, ()):
        yield enricher, "enrichers"
    if name in offers.investigators:
        yield offers.investigators[name], "investigator"
    if name in offers.intakes:
        yield offers.intakes[name], "intake"


def _list_kinds(name: str, offers: PluginOffers) -> Iterator[OfferedKind]:
    for kind, section in _list_offered(name, offers):
        described = _build_kind(section, kind)
        if issubclass(kind, Provider):
            described = replace(
                described,
                capabilities=tuple(sorted(kind.capabilities())),
                streams=_streams(kind),
                permissions=kind.permissions,
            )
        yield described


def _build_kind(section: str, kind: Offered) -> OfferedKind:
    base: type[PluginSettings] = BASES[section]
    return OfferedKind(
        section=section,
        name=kind.name if issubclass(kind, Enricher) else kind.__name__,
        summary=(kind.__doc__ or "").strip().partition("\n")[0],
        settings=tuple(list_settings(kind.Settings, base)),
        schema=settings_schema(kind.Settings),
    )


def _streams(kind: type[Provider]) -> tuple[str, ...] | None:
    """Return a provider's streams with default settings."""
    try:
        made = object.__new__(kind)
        settings: type[BaseModel] = kind.Settings
        made.settings = settings.model_construct()
        return tuple(made.streams())
    except Exception:  # noqa: BLE001 - settings are missing, or it is broken, which is reported elsewhere
        return None


def _list_users(name: str, file: PluginsFile) -> Iterator[str]:
    for section in ("providers", "destinations", "enrichers"):
        for table, settings in getattr(file, section).items():
            if settings.get("plugin") == name:
                yield f"{section}.{table}"
    if file.investigator.get("plugin", DEFAULT_INVESTIGATOR) == name:
        yield "investigator"
    if file.intake.get("plugin") == name:
        yield "intake"


class PluginInventory:
    """All installed plugins, and the offers of those that were loaded."""

    def __init__(
        self,
        file: PluginsFile | None = None,
        installed: Sequence[InstalledPlugin] = (),
        offers: PluginOffers | None = None,
    ) -> None:
        self._file = file or PluginsFile()
        self._installed = installed
        self._offers = offers or PluginOffers()

    @property
    def loaded(self) -> Collection[str]:
        """Names of the plugins that were loaded."""
        return self._offers.hooks.keys()

    @property
    def routes(self) -> Mapping[str, Sequence[Route]]:
        """API routes of the loaded plugins, by plugin."""
        return self._offers.routes

    @property
    def console_pages(self) -> Mapping[str, Sequence[ConsolePage]]:
        """Console pages of the loaded plugins, by plugin."""
        return self._offers.console_pages

    @property
    def metrics(self) -> Mapping[str, Callable[..., Any]]:
        """Hooks `tocsin_metrics` of the loaded plugins, by plugin."""
        return self._offers.metrics

    def find_owners(self, module: str) -> Sequence[str]:
        """Return the enabled plugins that a module belongs to.

        These are the plugin whose package contains the module, or else all plugins in its top-level
        package.
        """
        parts = module.split(".")
        for length in range(len(parts), 0, -1):
            if owners := self._owners.get(".".join(parts[:length])):
                return owners
        return ()

    @cached_property
    def _owners(self) -> Mapping[str, Sequence[str]]:
        """The names of the enabled plugins of each package."""
        owners: dict[str, list[str]] = {}
        for plugin in self._installed:
            if self._file.enables(plugin.name):
                module = plugin.entry_point.module
                for package in {module, module.partition(".")[0]} - {"tocsin"}:
                    owners.setdefault(package, []).append(plugin.name)
        return owners

    @cached_property
    def plugins(self) -> Sequence[PluginDescription]:
        """Description of each plugin, by name, computed on first access."""
        return describe_plugins(self._file, self._installed, self._offers)
