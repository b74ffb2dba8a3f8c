"""What one installed plugin is: what it offers, what it needs, and why it may be absent."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tocsin.errors import OperatorError
from tocsin.fields import PluginSettings
from tocsin.hookspecs import Channel, Provider
from tocsin.registry.file import PluginsFile
from tocsin.registry.installed import ON_BY_DEFAULT, InstalledPlugin, by_name
from tocsin.registry.loading import Offers, load
from tocsin.registry.settings_schema import Setting, list_settings, settings_schema
from tocsin.validation import nearest


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of provider or channel that a plugin offers."""

    section: str
    """`providers` or `destinations`: the tables of `plugins.toml` that may use it."""
    name: str
    summary: str
    settings: tuple[Setting, ...]
    schema: Mapping[str, Any]
    """The JSON Schema of the settings."""
    capabilities: tuple[str, ...] = ()
    streams: tuple[str, ...] | None = ()
    """None where they depend on the settings."""
    permissions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Description:
    """What is known of a plugin; of one that cannot be used, what its metadata says."""

    name: str
    distribution: str
    version: str
    enabled: bool
    hooks: tuple[str, ...]
    kinds: tuple[Kind, ...]
    used_by: tuple[str, ...]
    """The tables of `plugins.toml` that name it, such as `providers.edge`."""
    absent: str | None
    """Why this service does not have it, and what would be right; None if it has it."""
    broken: bool
    """Whether enabling it would not help."""


async def describe(
    name: str, file: PluginsFile, installed: Sequence[InstalledPlugin]
) -> Description:
    """Return what the plugin is. It is imported for that, enabled or not.

    Raises OperatorError where none of this name is installed.
    """
    known = by_name(installed)
    found = known.get(name, [])
    if not found:
        raise OperatorError(why_absent(name, known, file))
    shared = len(found) > 1
    offers = Offers() if shared else await load(found)
    flaw = None if shared else _flaw(name, offers)
    return Description(
        name=name,
        distribution=" and ".join(plugin.distribution for plugin in found),
        version=" and ".join(plugin.version for plugin in found),
        enabled=file.enables(name),
        hooks=tuple(_hooks(name, offers)),
        kinds=tuple(_kinds(name, offers)),
        used_by=tuple(_users(name, file)),
        absent=flaw or why_absent(name, known, file),
        broken=shared or flaw is not None,
    )


def why_absent(
    name: str, known: Mapping[str, Sequence[InstalledPlugin]], file: PluginsFile
) -> str | None:
    """Return why a plugin is not there, as far as metadata and `plugins.toml` tell; None if not."""
    match known.get(name, []):
        case []:
            names = ", ".join(known)
            return f"no plugin {name!r} is installed; known: {names}{nearest(name, list(known))}"
        case [_]:
            return None if file.enables(name) else _how_to_enable(name, file)
        case several:
            names = " and ".join(plugin.distribution for plugin in several)
            return f"{names} offer a plugin of this name; uninstall one of them"


def _how_to_enable(name: str, file: PluginsFile) -> str:
    if name in ON_BY_DEFAULT:
        return f"it is disabled; take {name!r} out of `disabled`"
    line = json.dumps([*file.enabled, name])
    return f"it is not enabled; write `enabled = {line}`"


def _flaw(name: str, offers: Offers) -> str | None:
    """Return why a plugin cannot be used though it is alone of its name."""
    if name in offers.absent:
        return offers.absent[name].reason
    if not list(_hooks(name, offers)):
        return "it implements no hook; mark those that it has with `@hookimpl`"
    for kind in (offers.providers.get(name), offers.channels.get(name)):
        if lacking := sorted(getattr(kind, "__abstractmethods__", ())):
            return f"its kind cannot be made: it lacks {', '.join(lacking)}"
    return None


def _hooks(name: str, offers: Offers) -> Iterator[str]:
    if name in offers.providers:
        yield "tocsin_providers"
    if name in offers.channels:
        yield "tocsin_channels"
    if offers.template_paths:
        yield "tocsin_template_paths"
    if name in offers.observers:
        yield "tocsin_event"


def _kinds(name: str, offers: Offers) -> Iterator[Kind]:
    if name in offers.providers:
        provider = offers.providers[name]
        yield replace(
            _kind("providers", provider, Provider.Settings),
            capabilities=tuple(sorted(provider.capabilities())),
            streams=_streams(provider),
            permissions=provider.permissions,
        )
    if name in offers.channels:
        yield _kind("destinations", offers.channels[name], Channel.Settings)


def _kind(section: str, kind: type[Provider | Channel], base: type[PluginSettings]) -> Kind:
    return Kind(
        section=section,
        name=kind.__name__,
        summary=(kind.__doc__ or "").strip().partition("\n")[0],
        settings=tuple(list_settings(kind.Settings, base)),
        schema=settings_schema(kind.Settings),
    )


def _streams(kind: type[Provider]) -> tuple[str, ...] | None:
    """Return what a provider says without its settings, which only `__init__` would hand it."""
    try:
        return tuple(kind.streams(object.__new__(kind)))
    except Exception:  # noqa: BLE001 - it asked for them, or it is broken and told so elsewhere
        return None


def _users(name: str, file: PluginsFile) -> Iterator[str]:
    for section, tables in (("providers", file.providers), ("destinations", file.destinations)):
        for table, settings in tables.items():
            if settings.get("plugin") == name:
                yield f"{section}.{table}"
