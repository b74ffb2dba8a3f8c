"""Import of enabled plugins, and collection of their offers."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pluggy
import structlog

from tocsin import hookspecs
from tocsin.errors import ConfigurationProblem, OperatorError
from tocsin.hookspecs import Channel, ConsolePage, Enricher, Intake, Investigator, Provider, Route
from tocsin.plugin_results import find_wrong_signature, require_items, require_kind
from tocsin.registry.entry_points import (
    ON_BY_DEFAULT,
    InstalledPlugin,
    describe_unknown,
    index_by_name,
)
from tocsin.registry.plugins_file import PluginsFile, is_name
from tocsin.validation import find_nearest, suggest_nearest

_HOOK_SECONDS = 10
T = TypeVar("T")
_log = structlog.get_logger()


class _InvalidPluginError(Exception):
    """A plugin does not offer what its hooks promise."""


@dataclass(frozen=True, slots=True)
class AbsentPlugin:
    """A plugin or a table that was left out, and the reason."""

    name: str
    reason: str


@dataclass(slots=True)
class PluginOffers:
    """Offers of the imported plugins by name, and the plugins that failed to import."""

    providers: dict[str, type[Provider]] = field(default_factory=dict)
    channels: dict[str, type[Channel]] = field(default_factory=dict)
    enrichers: dict[str, list[type[Enricher]]] = field(default_factory=dict)
    investigators: dict[str, type[Investigator]] = field(default_factory=dict)
    intakes: dict[str, type[Intake]] = field(default_factory=dict)
    observers: dict[str, dict[str, Callable[..., Any]]] = field(default_factory=dict)
    commands: dict[str, Callable[[], Any]] = field(default_factory=dict)
    routes: dict[str, Sequence[Route]] = field(default_factory=dict)
    console_pages: dict[str, Sequence[ConsolePage]] = field(default_factory=dict)
    metrics: dict[str, Callable[..., Any]] = field(default_factory=dict)
    template_paths: list[Path] = field(default_factory=list)
    hooks: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Hooks that each plugin implements."""
    absent: dict[str, AbsentPlugin] = field(default_factory=dict)


def choose_plugins(
    file: PluginsFile, installed: Iterable[InstalledPlugin], name: str
) -> tuple[list[InstalledPlugin], list[ConfigurationProblem]]:
    """Return the plugins to import, and a problem for each unusable name."""
    known = index_by_name(installed)
    chosen: list[InstalledPlugin] = []
    problems: list[ConfigurationProblem] = []
    for wanted in dict.fromkeys((*sorted(ON_BY_DEFAULT - set(file.disabled)), *file.enabled)):
        match known.get(wanted, []):
            case [plugin]:
                chosen.append(plugin)
            case []:
                problems.append(_not_installed(name, "enabled", wanted, sorted(known)))
            case several:
                names = " and ".join(plugin.distribution for plugin in several)
                found = f"{wanted!r} is provided by {names}"
                problems.append(
                    ConfigurationProblem(name, "enabled", found, "uninstall one of them")
                )
    problems += [
        _not_installed(name, "disabled", unwanted, sorted(ON_BY_DEFAULT))
        for unwanted in file.disabled
        if unwanted not in ON_BY_DEFAULT
    ]
    return chosen, problems


def enable_used_plugins(file: PluginsFile, installed: Iterable[InstalledPlugin]) -> PluginsFile:
    """Return the file with the plugins enabled that it misspells or uses without enabling.

    With these plugins, further mistakes in their tables can be found.
    """
    known = sorted(index_by_name(installed))
    tables = (*file.providers.values(), *file.destinations.values(), *file.enrichers.values())
    used = [table["plugin"] for table in tables if isinstance(table.get("plugin"), str)]
    wanted = [find_nearest(name, known) or name for name in (*file.enabled, *used)]
    own = [name for name in file.enabled if name not in known]
    usable = [name for name in dict.fromkeys(wanted) if name in known]
    return file.model_copy(update={"enabled": (*usable, *own)})


def _not_installed(file: str, key: str, name: str, known: Sequence[str]) -> ConfigurationProblem:
    found, remedy = describe_unknown(name), "install the package that contains it, or use one of"
    if key == "disabled":
        found, remedy = f"{name!r} is not enabled by default", "use one of"
    return ConfigurationProblem(
        file, key, found, f"{remedy}: {', '.join(known)}{suggest_nearest(name, known)}"
    )


async def load_plugins(plugins: Iterable[InstalledPlugin]) -> PluginOffers:
    """Import each plugin and return the offers; one that fails is left out with its reason."""
    manager = pluggy.PluginManager("tocsin")
    manager.add_hookspecs(hookspecs)
    offers = PluginOffers()
    for plugin in plugins:
        try:
            module = plugin.entry_point.load()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - it costs only itself
            _leave_out(offers, plugin.name, f"could not be imported: {error!r}")
            continue
        try:
            manager.register(module, plugin.name)
            _check_names(manager, plugin.name)
            await _collect(manager, plugin.name, offers)
            offers.hooks[plugin.name] = tuple(_list_hooks(manager, plugin.name))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - it costs only itself
            manager.unregister(name=plugin.name)
            _leave_out(offers, plugin.name, f"imported, but {_describe_error(error)}")
    return offers


async def load_commands(plugin: InstalledPlugin) -> Any:
    """Import a plugin, and return what its hook `tocsin_commands` returns.

    Raises OperatorError if it cannot be imported, has no such hook, or the hook fails.
    """
    offers = await load_plugins([plugin])
    if absent := offers.absent.get(plugin.name):
        raise OperatorError(f"plugin {plugin.name}: {absent.reason}")
    if (hook := offers.commands.get(plugin.name)) is None:
        raise OperatorError(f"plugin {plugin.name} has no commands (hook `tocsin_commands`)")
    try:
        return await _call(hook)
    except (Exception, SystemExit) as error:
        raise OperatorError(f"plugin {plugin.name}: {_describe_error(error)}") from error


def _leave_out(offers: PluginOffers, name: str, reason: str) -> None:
    offers.absent[name] = AbsentPlugin(name, reason)
    _log.warning("plugin skipped", plugin=name, exc_info=True)


def _check_names(manager: pluggy.PluginManager, name: str) -> None:
    """Raise `_InvalidPluginError` if a plugin marks a function that is not named like a hook."""
    hooks = vars(manager.hook)
    known = [name for name, caller in hooks.items() if getattr(caller, "spec", None)]
    for hook, caller in hooks.items():
        if hook not in known and list(_implementations(caller, name)):
            raise _InvalidPluginError(f"{hook!r} is not a hook{suggest_nearest(hook, known)}")


def _list_hooks(manager: pluggy.PluginManager, name: str) -> Iterator[str]:
    for hook, caller in vars(manager.hook).items():
        if getattr(caller, "spec", None) and any(_implementations(caller, name)):
            yield hook


def _describe_error(error: BaseException) -> str:
    match error:
        case _InvalidPluginError():
            return str(error)
        case pluggy.PluginValidationError():
            return (
                f"one of its hooks does not match its specification: {' '.join(str(error).split())}"
            )
        case TimeoutError():
            return f"one of its hooks did not return within {_HOOK_SECONDS} seconds"
    return f"one of its hooks failed: {error!r}"


async def _collect(manager: pluggy.PluginManager, name: str, offers: PluginOffers) -> None:
    for hook in _implementations(manager.hook.tocsin_providers, name):
        offers.providers[name] = _of_kind(hook, await _call(hook), Provider)
    for hook in _implementations(manager.hook.tocsin_channels, name):
        offers.channels[name] = _of_kind(hook, await _call(hook), Channel)
    for hook in _implementations(manager.hook.tocsin_enrichers, name):
        offers.enrichers[name] = _enrichers(hook, await _call(hook), offers)
    for hook in _implementations(manager.hook.tocsin_investigators, name):
        offers.investigators[name] = _of_kind(hook, await _call(hook), Investigator)
    for hook in _implementations(manager.hook.tocsin_intakes, name):
        offers.intakes[name] = _of_kind(hook, await _call(hook), Intake)
    for caller in (
        manager.hook.tocsin_event,
        manager.hook.tocsin_incident_changed,
        manager.hook.tocsin_investigation_finished,
    ):
        for hook in _implementations(caller, name):
            offers.observers.setdefault(name, {})[caller.name] = hook
    for hook in _implementations(manager.hook.tocsin_template_paths, name):
        offers.template_paths += [Path(path) for path in await _call(hook)]
    await _collect_extensions(manager, name, offers)


async def _collect_extensions(
    manager: pluggy.PluginManager, name: str, offers: PluginOffers
) -> None:
    for hook in _implementations(manager.hook.tocsin_commands, name):
        offers.commands[name] = hook
    for hook in _implementations(manager.hook.tocsin_routes, name):
        offers.routes[name] = _all_of_kind(hook, await _call(hook), Route)
    for hook in _implementations(manager.hook.tocsin_console_pages, name):
        offers.console_pages[name] = _all_of_kind(hook, await _call(hook), ConsolePage)
    for hook in _implementations(manager.hook.tocsin_metrics, name):
        offers.metrics[name] = hook


def _implementations(caller: pluggy.HookCaller, name: str) -> Iterator[Callable[..., Any]]:
    return (impl.function for impl in caller.get_hookimpls() if impl.plugin_name == name)


async def _call(hook: Callable[[], Any]) -> Any:
    """Return the result of a hook, or of the coroutine that it returns."""
    async with asyncio.timeout(_HOOK_SECONDS):
        result = await asyncio.to_thread(hook)
        return await result if inspect.isawaitable(result) else result


def _all_of_kind(hook: Callable[[], Any], offered: Any, kind: type[T]) -> Sequence[T]:
    """Return the objects from a hook; TypeError if it or one of them has another type."""
    return [require_kind(one, kind, hook) for one in require_items(offered, hook)]


def _of_kind(hook: Callable[[], Any], offered: Any, kind: type[Any]) -> Any:
    """Return the class from a hook; `_InvalidPluginError` if it is not a subclass of the kind."""
    returned = f"its hook `{hook.__name__}` returned"
    if isinstance(offered, kind):
        name = type(offered).__name__
        raise _InvalidPluginError(
            f"{returned} an instance of {name}; return the class itself: `return {name}`"
        )
    if not (isinstance(offered, type) and issubclass(offered, kind)):
        raise _InvalidPluginError(f"{returned} {offered!r}, not a subclass of {kind.__name__}")
    settings: object = getattr(offered, "Settings", None)
    if not (isinstance(settings, type) and issubclass(settings, kind.Settings)):
        base = f"{kind.__name__}.Settings"
        raise _InvalidPluginError(f"`{offered.__name__}.Settings` does not derive from `{base}`")
    for name, method in vars(kind).items():
        own = getattr(offered, name)
        is_own = inspect.isfunction(method) and own is not method
        if is_own and (wrong := find_wrong_signature(own, method)):
            raise _InvalidPluginError(wrong)
    return offered


def _enrichers(hook: Callable[[], Any], offered: Any, offers: PluginOffers) -> list[type[Enricher]]:
    """Return the classes from a hook; `_InvalidPluginError` if it did not return a list."""
    if isinstance(offered, type) or not isinstance(offered, Sequence):
        raise _InvalidPluginError(
            f"its hook `{hook.__name__}` returned {offered!r}, not a list of classes"
        )
    kinds = [_of_kind(hook, kind, Enricher) for kind in offered]
    taken = {kind.name for known in offers.enrichers.values() for kind in known}
    for kind in kinds:
        name: object = getattr(kind, "name", None)
        if not (isinstance(name, str) and is_name(name)):
            raise _InvalidPluginError(
                f"`{kind.__name__}.name` is {name!r}; use letters, digits, - and _"
            )
        if name in taken:
            raise _InvalidPluginError(
                f"another enricher has the name {name!r}; rename `{kind.__name__}`"
            )
        taken.add(name)
    return kinds
