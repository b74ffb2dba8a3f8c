"""Holding `plugins.toml` against the plugins that it names; every problem at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import ValidationError

from tocsin.errors import ConfigurationError, Problem
from tocsin.fields import Origin, PluginSettings
from tocsin.hookspecs import Channel, Provider
from tocsin.registry.file import PluginsFile, is_name, read_plugins_file
from tocsin.registry.installed import InstalledPlugin, installed_plugins
from tocsin.registry.loading import Absent, Offers, choose, load
from tocsin.validation import explain, nearest

Kind = TypeVar("Kind", Provider, Channel)


@dataclass(frozen=True, slots=True)
class Configured(Generic[Kind]):
    """A provider or destination whose settings are valid, not yet made.

    `kind` is None where its plugin had to be left out; what every plugin can be told is known
    even then, so that events for an absent destination wait for it.
    """

    name: str
    kind: type[Kind] | None
    settings: Any
    table: Mapping[str, Any]
    """The settings as they are written."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """What `plugins.toml` comes to, and what had to be left out of it."""

    path: Path
    providers: Sequence[Configured[Provider]]
    destinations: Sequence[Configured[Channel]]
    channels: Mapping[str, type[Channel]]
    """The kinds of channel that the enabled plugins offer, by the plugins' names."""
    observers: Mapping[str, Callable[..., Any]]
    """The plugins that want to hear of events, and what to call."""
    template_paths: Sequence[Path]
    absent: Sequence[Absent]
    strict: bool
    templates_dir: Path | None = None
    """The operator's own templates, which come before those of plugins."""

    @property
    def receivers(self) -> list[str]:
        """The receivers that there are templates for."""
        return _receivers(self.template_paths, self.templates_dir)


async def load_configuration(
    path: Path,
    installed: Sequence[InstalledPlugin] | None = None,
    *,
    templates_dir: Path | None = None,
) -> Configuration:
    """Return the checked configuration; ConfigurationError with all that is wrong with it.

    The templates of `templates_dir` come before those of plugins.
    """
    installed = installed_plugins() if installed is None else installed
    file, problems = read_plugins_file(path)
    chosen, not_chosen = choose(file, installed, path.name)
    offers = await load(chosen)
    reading = _Reading(path, file, offers, {plugin.name for plugin in installed})
    providers = list(reading.objects("providers", file.providers, offers.providers))
    destinations = list(reading.objects("destinations", file.destinations, offers.channels))
    reading.check_providers(destinations)
    reading.check_templates(destinations, _receivers(offers.template_paths, templates_dir))
    problems += not_chosen + reading.problems
    absent = [*offers.absent.values(), *reading.absent]
    if file.strict:
        problems += [not_strict(path, left_out) for left_out in absent]
    if problems:
        raise ConfigurationError(problems)
    return Configuration(
        path=path,
        providers=providers,
        destinations=destinations,
        channels=offers.channels,
        observers=offers.observers,
        template_paths=offers.template_paths,
        absent=absent,
        strict=file.strict,
        templates_dir=templates_dir,
    )


def _receivers(template_paths: Iterable[Path], templates_dir: Path | None) -> list[str]:
    folders = (
        folder.name
        for path in (*template_paths, *([templates_dir] if templates_dir else ()))
        if path.is_dir()
        for folder in sorted(path.iterdir())
        if folder.is_dir() and not folder.name.startswith(("_", "."))
    )
    return list(dict.fromkeys(folders))


def not_strict(path: Path, left_out: Absent) -> Problem:
    """Return the problem that something absent is where nothing may be left out."""
    return Problem(path.name, left_out.name, left_out.reason, "mend it, or set strict = false")


def _common(section: str, table: dict[str, Any]) -> tuple[type[PluginSettings], dict[str, Any]]:
    """Return what can be known of a table whose plugin is absent, and the model of it."""
    model = Provider.Settings if section == "providers" else Channel.Settings
    return model, {name: value for name, value in table.items() if name in model.model_fields}


class _Reading:
    """Collects problems and what is left out while the tables of one file are read."""

    def __init__(self, path: Path, file: PluginsFile, offers: Offers, installed: set[str]) -> None:
        self.path = path
        self.file = file
        self.offers = offers
        self.installed = installed
        self.problems: list[Problem] = []
        self.absent: list[Absent] = []

    def problem(self, key: str, found: str, expected: str) -> None:
        self.problems.append(Problem(self.path.name, key, found, expected))

    def objects(
        self, section: str, tables: Mapping[str, dict[str, Any]], kinds: Mapping[str, type[Kind]]
    ) -> Iterator[Configured[Kind]]:
        """Yield what is configured rightly in one section."""
        for name, table in tables.items():
            key = f"{section}.{name}"
            if not is_name(name):
                self.problem(key, f"found the name {name!r}", "use letters, digits, - and _")
            plugin = self._plugin(section, key, table, list(kinds))
            if plugin is None:
                continue
            kind = kinds.get(plugin)
            model, known = (kind.Settings, table) if kind else _common(section, table)
            if (settings := self._settings(key, known, model)) is not None:
                yield Configured(name, kind, settings, table)

    def _plugin(
        self, section: str, key: str, table: dict[str, Any], kinds: list[str]
    ) -> str | None:
        """Return the plugin that a table names, or None after noting that it cannot be used."""
        plugin = table.get("plugin")
        if not isinstance(plugin, str):
            found = "missing" if plugin is None else f"found {plugin!r}"
            self.problem(f"{key}.plugin", found, f"name one of: {', '.join(kinds) or 'none yet'}")
            return None
        if plugin in self.offers.absent:
            reason = self.offers.absent[plugin].reason
            self.absent.append(Absent(key, f"its plugin {plugin!r} was left out: {reason}"))
        elif plugin not in kinds:
            self.problem(f"{key}.plugin", *self._unusable(section, plugin, kinds))
            return None
        return plugin

    def _unusable(self, section: str, plugin: str, kinds: list[str]) -> tuple[str, str]:
        if plugin in self.file.enabled and plugin in self.installed:
            return (
                f"{plugin!r} offers no {section}",
                f"name one of: {', '.join(kinds) or 'none yet'}",
            )
        if plugin in self.installed:
            return f"{plugin!r} is installed but not enabled", f"add {plugin!r} to `enabled`"
        hint = nearest(plugin, [*kinds, *sorted(self.installed)])
        return (
            f"no plugin {plugin!r} is installed",
            f"name one of: {', '.join(kinds) or 'none yet'}{hint}",
        )

    def _settings(
        self, key: str, table: dict[str, Any], model: type[PluginSettings]
    ) -> PluginSettings | None:
        """Return the validated settings, or None after noting what is wrong with them."""
        try:
            return model.model_validate(table, context=Origin(self.path.parent).context())
        except ValidationError as error:
            for mistake in explain(error, model):
                path = ".".join((key, *mistake.path))
                self.problem(path, mistake.found, mistake.expected)
            return None

    def check_providers(self, destinations: Sequence[Configured[Channel]]) -> None:
        """Note every destination that waits for incidents of a provider that is not there."""
        known = list(self.file.providers)
        for destination in destinations:
            for wanted in destination.settings.providers:
                if wanted not in known:
                    hint = f"name one of: {', '.join(known) or 'none yet'}{nearest(wanted, known)}"
                    key = f"destinations.{destination.name}.providers"
                    self.problem(key, f"there is no provider {wanted!r}", hint)

    def check_templates(
        self, destinations: Sequence[Configured[Channel]], receivers: Sequence[str]
    ) -> None:
        """Note every destination whose template is not there."""
        for destination in destinations:
            wanted = destination.settings.template
            if wanted not in receivers:
                hint = f"name one of: {', '.join(receivers)}{nearest(wanted, receivers)}"
                self.problem(
                    f"destinations.{destination.name}.template", f"no template {wanted!r}", hint
                )
