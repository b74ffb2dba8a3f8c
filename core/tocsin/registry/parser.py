"""Parsing of the tables in `plugins.toml`, collecting every problem."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from tocsin.errors import ConfigurationProblem
from tocsin.fields import PluginSettings, SettingsOrigin
from tocsin.hookspecs import Capability, Channel, Enricher, Intake, Investigator, Provider
from tocsin.model import IncidentStatus
from tocsin.observables import EnvironmentSettings
from tocsin.recurrence import ScheduleDefinition
from tocsin.registry.entry_points import DEFAULT_INVESTIGATOR, describe_unknown
from tocsin.registry.loader import AbsentPlugin, PluginOffers
from tocsin.registry.plugins_file import PluginsFile, is_name
from tocsin.registry.retention import RetentionSettings
from tocsin.validation import (
    explain_errors,
    find_nearest,
    list_choices,
    suggest_nearest,
    suggest_provider,
)

_SIMILARITY = 0.75  # of a name of a plugin and the one that was meant
_CAPABILITIES = {
    "write_back": (Capability.COMMENT, "cannot write comments"),
    "write_back_status": (Capability.STATUS, "cannot set a status"),
}


def find_unsupported_write_back(
    kind: type[Provider], settings: Provider.Settings
) -> Iterator[tuple[str, str, str]]:
    """Yield each unsupported write-back setting, the value found, and the remedy."""
    able = kind.capabilities()
    lacking = {
        name: problem
        for name, (needed, problem) in _CAPABILITIES.items()
        if getattr(settings, name) and needed not in able
    }
    for name, problem in lacking.items():
        yield name, f"{settings.plugin!r} {problem}", "remove this setting"
    closes = Capability.STATUS in able and IncidentStatus.CLOSED in kind.settable
    if settings.close_from_tickets and not closes:
        found = f"{settings.plugin!r} cannot close incidents"
        yield "close_from_tickets", found, "remove this setting, and close incidents in the SIEM"
    status, needs_comment = settings.write_back_status, Capability.COMMENT in able
    if status and needs_comment and not settings.write_back and not lacking:
        found = f"found {status.value!r}, but `write_back` is off"
        yield "write_back_status", found, "set `write_back = true` as well, or remove this setting"


Kind = TypeVar("Kind", Provider, Channel, Enricher, Investigator, Intake)
Section = TypeVar("Section", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class ConfiguredPlugin(Generic[Kind]):
    """A table with valid settings, before its plugin object is created.

    `kind` is None if its plugin was left out; the common settings are known even then, so that
    events for an absent destination wait for it.
    """

    name: str
    kind: type[Kind] | None
    settings: Any
    table: Mapping[str, Any]
    """The settings as written."""


BASES: Mapping[str, type[PluginSettings]] = MappingProxyType(
    {
        "providers": Provider.Settings,
        "destinations": Channel.Settings,
        "enrichers": Enricher.Settings,
        "investigator": Investigator.Settings,
        "intake": Intake.Settings,
    }
)


def _enable(section: str) -> str:
    return f"enable a plugin for `{section}`"


def _common_settings(
    section: str, table: dict[str, Any]
) -> tuple[type[PluginSettings], dict[str, Any]]:
    """Return the common settings of a table whose plugin is absent, and their model."""
    model = BASES[section]
    return model, {name: value for name, value in table.items() if name in model.model_fields}


def table_path(section: str, name: str) -> str:
    """Return the path of a table; the investigator and the intake are sections by themselves."""
    return section if section == name else f"{section}.{name}"


class ConfigurationParser:
    """Collects problems and absent plugins while parsing the tables of one file."""

    def __init__(
        self,
        path: Path,
        file: PluginsFile,
        offers: PluginOffers,
        installed: set[str],
        *,
        knows_enabled: bool,
    ) -> None:
        self.path = path
        self.file = file
        self.offers = offers
        self.installed = installed
        self.knows_enabled = knows_enabled
        self.problems: list[ConfigurationProblem] = []
        self.absent: list[AbsentPlugin] = []

    def problem(self, key: str, found: str, expected: str) -> None:
        """Add a problem."""
        self.problems.append(ConfigurationProblem(self.path.name, key, found, expected))

    def objects(
        self, section: str, tables: Mapping[str, dict[str, Any]], kinds: Mapping[str, type[Kind]]
    ) -> Iterator[ConfiguredPlugin[Kind]]:
        """Yield the valid tables of one section."""
        for name, table in tables.items():
            key = f"{section}.{name}"
            if not is_name(name):
                self.problem(key, f"found the name {name!r}", "use letters, digits, - and _")
            plugin = self._plugin(section, key, table, list(kinds))
            if plugin is not None:
                yield from self._configured(section, name, table, kinds.get(plugin))
            else:
                self._add_further_problems(section, name, table, kinds)

    def _add_further_problems(
        self, section: str, name: str, table: dict[str, Any], kinds: Mapping[str, type[Kind]]
    ) -> None:
        """Add the other problems of a table with a misspelled plugin, if the right one is clear."""
        nearest = find_nearest(str(table.get("plugin")), list(kinds), _SIMILARITY)
        if nearest is not None:
            for _ in self._configured(section, name, table | {"plugin": nearest}, kinds[nearest]):
                pass

    def _configured(
        self, section: str, name: str, table: dict[str, Any], kind: type[Kind] | None
    ) -> Iterator[ConfiguredPlugin[Kind]]:
        """Yield the table if its settings are valid."""
        key = table_path(section, name)
        model, known = (kind.Settings, table) if kind else _common_settings(section, table)
        settings = self._settings(key, known, model)
        if settings is not None and self._can_write_back(key, kind, settings):
            yield ConfiguredPlugin(name, kind, settings, table)

    def _can_write_back(self, key: str, kind: type[Kind] | None, settings: Any) -> bool:
        """Return whether a provider supports its write-back settings; add a problem if not."""
        if kind is None or not issubclass(kind, Provider):
            return True
        wrong = list(find_unsupported_write_back(kind, settings))
        for name, found, expected in wrong:
            self.problem(f"{key}.{name}", found, expected)
        return not wrong

    def enrichers(self) -> Iterator[ConfiguredPlugin[Enricher]]:
        """Yield the configured enrichers, and each standing kind without a table."""
        offered = {
            plugin: {kind.name: kind for kind in kinds}
            for plugin, kinds in self.offers.enrichers.items()
        }
        standing = {
            name: (plugin, kind)
            for plugin, kinds in offered.items()
            for name, kind in kinds.items()
            if kind.standing
        }
        for name, table in self.file.enrichers.items():
            for made in self._enricher(name, table, offered):
                if made.kind is not None:
                    standing.pop(made.kind.name, None)
                yield made
        for name, (plugin, kind) in standing.items():
            if name in self.file.enrichers:
                found = f"found the name {name!r}, which is reserved for a kind of {plugin!r}"
                self.problem(f"enrichers.{name}", found, "choose another name")
            else:
                yield from self._configured("enrichers", name, {"plugin": plugin}, kind)

    def _enricher(
        self, name: str, table: dict[str, Any], offered: Mapping[str, Mapping[str, type[Enricher]]]
    ) -> Iterator[ConfiguredPlugin[Enricher]]:
        key = f"enrichers.{name}"
        if not is_name(name):
            self.problem(key, f"found the name {name!r}", "use letters, digits, - and _")
        plugin = self._plugin("enrichers", key, table, list(offered))
        if plugin is None:
            return
        kinds = offered.get(plugin, {})
        only = next(iter(kinds)) if len(kinds) == 1 else ""
        wanted = str(table.get("kind", only))
        if kinds and wanted not in kinds:
            found = f"{plugin!r} does not provide the kind {wanted!r}" if wanted else "missing"
            hint = suggest_nearest(wanted, list(kinds)) if wanted else ""
            self.problem(f"{key}.kind", found, f"use one of: {', '.join(kinds)}{hint}")
            return
        yield from self._configured("enrichers", name, table, kinds.get(wanted))

    def investigator(self) -> ConfiguredPlugin[Investigator] | None:
        """Return the configured or default investigator; None if there is none."""
        table, kinds = self.file.investigator, self.offers.investigators
        named = {"plugin": DEFAULT_INVESTIGATOR} | table
        if not table and DEFAULT_INVESTIGATOR not in (*kinds, *self.offers.absent):
            return None
        plugin = self._plugin("investigator", "investigator", named, list(kinds))
        if plugin is None:
            return None
        return next(
            self._configured("investigator", "investigator", named, kinds.get(plugin)), None
        )

    def intake(self) -> ConfiguredPlugin[Intake] | None:
        """Return the configured intake; None if there is none."""
        table, kinds = self.file.intake, self.offers.intakes
        if not table or (plugin := self._plugin("intake", "intake", table, list(kinds))) is None:
            return None
        return next(self._configured("intake", "intake", table, kinds.get(plugin)), None)

    def environment(self) -> EnvironmentSettings:
        """Return [environment], or its defaults if it is invalid."""
        return self._section("environment", self.file.environment, EnvironmentSettings)

    def retention(self) -> RetentionSettings:
        """Return [retention]; if it is invalid, its defaults, which keep everything."""
        return self._section("retention", self.file.retention, RetentionSettings)

    def _section(self, name: str, table: Mapping[str, Any], model: type[Section]) -> Section:
        try:
            return model.model_validate(table)
        except ValidationError as error:
            mistakes = explain_errors(error, model)
        for mistake in mistakes:
            path = ".".join((name, *mistake.path))
            self.problem(path, mistake.found, mistake.expected)
        return model()

    def schedules(self) -> dict[str, ScheduleDefinition]:
        """Return the valid definitions under [schedules], by name."""
        return {
            name: definition
            for name, table in self.file.schedules.items()
            if (definition := self._schedule(name, table)) is not None
        }

    def _schedule(self, name: str, table: dict[str, Any]) -> ScheduleDefinition | None:
        key = f"schedules.{name}"
        if not is_name(name):
            self.problem(key, f"found the name {name!r}", "use letters, digits, - and _")
        try:
            definition = ScheduleDefinition.model_validate(table)
        except ValidationError as error:
            for mistake in explain_errors(error, ScheduleDefinition):
                path = ".".join((key, *mistake.path))
                self.problem(path, mistake.found, mistake.expected)
            return None
        known = list(self.file.providers)
        if definition.provider is not None and definition.provider not in known:
            self._no_provider(f"{key}.provider", definition.provider, known)
        return definition

    def _no_provider(self, key: str, wanted: str, known: Sequence[str]) -> None:
        self.problem(key, f"there is no provider {wanted!r}", suggest_provider(wanted, known))

    def _plugin(
        self, section: str, key: str, table: dict[str, Any], kinds: list[str]
    ) -> str | None:
        """Return the plugin that a table names; None, after adding a problem, if unusable."""
        plugin = table.get("plugin")
        if not isinstance(plugin, str):
            found = "missing" if plugin is None else f"found {plugin!r}"
            self.problem(f"{key}.plugin", found, list_choices(kinds, _enable(section)))
            return None
        if plugin in self.offers.absent:
            reason = self.offers.absent[plugin].reason
            self.absent.append(AbsentPlugin(key, f"its plugin {plugin!r} was not loaded: {reason}"))
        elif plugin not in kinds or not self._is_enabled(plugin):
            if self.knows_enabled or plugin not in self.installed:
                self.problem(f"{key}.plugin", *self._unusable(section, plugin, kinds))
            return None
        return plugin

    def _is_enabled(self, plugin: str) -> bool:
        """Return whether a plugin is enabled, even if `enabled` misspells it, which is reported."""
        unknown = [name for name in self.file.enabled if name not in self.installed]
        return self.file.enables(plugin) or any(find_nearest(name, [plugin]) for name in unknown)

    def _unusable(self, section: str, plugin: str, kinds: list[str]) -> tuple[str, str]:
        if plugin in self.file.enabled and plugin in self.installed:
            return (
                f"{plugin!r} cannot be used in `{section}`",
                list_choices(kinds, _enable(section)),
            )
        if plugin in self.installed:
            return f"{plugin!r} is installed but not enabled", f"add {plugin!r} to `enabled`"
        hint = suggest_nearest(plugin, [*kinds, *sorted(self.installed)])
        choices = list_choices(kinds, _enable(section))
        return (
            describe_unknown(plugin),
            f"install the package that contains it, or {choices}{hint}",
        )

    def _settings(
        self, key: str, table: dict[str, Any], model: type[PluginSettings]
    ) -> PluginSettings | None:
        """Return the validated settings; None, after adding problems, if invalid."""
        try:
            return model.model_validate(table, context=SettingsOrigin(self.path.parent).context())
        except ValidationError as error:
            for mistake in explain_errors(error, model, table):
                path = ".".join((key, *mistake.path))
                self.problem(path, mistake.found, mistake.expected)
            return None

    def check_providers(self, destinations: Sequence[ConfiguredPlugin[Channel]]) -> None:
        """Add a problem for each destination that filters by an unknown provider."""
        known = list(self.file.providers)
        for destination in destinations:
            for wanted in destination.settings.providers:
                if wanted not in known:
                    self._no_provider(f"destinations.{destination.name}.providers", wanted, known)

    def check_templates(
        self, destinations: Sequence[ConfiguredPlugin[Channel]], receivers: Sequence[str]
    ) -> None:
        """Add a problem for each destination with an unknown template."""
        for destination in destinations:
            wanted = destination.settings.template
            if wanted not in receivers:
                hint = f"use one of: {', '.join(receivers)}{suggest_nearest(wanted, receivers)}"
                self.problem(
                    f"destinations.{destination.name}.template",
                    f"unknown template {wanted!r}",
                    hint,
                )
