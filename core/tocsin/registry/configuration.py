"""Checked configuration from `plugins.toml`, with every problem at once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tocsin.errors import ConfigurationError, ConfigurationProblem
from tocsin.hookspecs import Channel, Enricher, Intake, Investigator, Provider
from tocsin.model import Marking
from tocsin.observables import EnvironmentSettings
from tocsin.recurrence import ScheduleDefinition
from tocsin.registry.entry_points import InstalledPlugin, installed_plugins
from tocsin.registry.inventory import PluginInventory
from tocsin.registry.loader import AbsentPlugin, choose_plugins, enable_used_plugins, load_plugins
from tocsin.registry.parser import ConfigurationParser, ConfiguredPlugin
from tocsin.registry.plugins_file import SECTIONS, PluginsFile, read_plugins_file
from tocsin.registry.retention import RetentionSettings


@dataclass(frozen=True, slots=True)
class Configuration:
    """The content of `plugins.toml`, and what was left out of it."""

    path: Path
    providers: Sequence[ConfiguredPlugin[Provider]]
    destinations: Sequence[ConfiguredPlugin[Channel]]
    enrichers: Sequence[ConfiguredPlugin[Enricher]]
    investigator: ConfiguredPlugin[Investigator] | None
    """None if the default one is disabled and no other is named."""
    environment: EnvironmentSettings
    channels: Mapping[str, type[Channel]]
    """Channel classes of enabled plugins, by plugin name."""
    observers: Mapping[str, Mapping[str, Callable[..., Any]]]
    """Event hooks of enabled plugins, by plugin name."""
    template_paths: Sequence[Path]
    absent: Sequence[AbsentPlugin]
    strict: bool
    templates_dir: Path | None = None
    """The operator's own templates, which take precedence."""
    intake: ConfiguredPlugin[Intake] | None = None
    schedules: Mapping[str, ScheduleDefinition] = field(default_factory=dict)
    """Recurring investigations, by name."""
    retention: RetentionSettings = field(default_factory=RetentionSettings)
    inventory: PluginInventory = field(default_factory=PluginInventory)
    """All installed plugins."""
    file: PluginsFile = field(default_factory=PluginsFile)
    """The content of the file as written."""

    @property
    def markings(self) -> Mapping[str, Marking]:
        """Marking of each provider's incidents."""
        return {provider.name: provider.settings.marking for provider in self.providers}

    @property
    def receivers(self) -> list[str]:
        """Receivers that have templates."""
        return _receivers(self.template_paths, self.templates_dir)


async def load_configuration(
    path: Path,
    installed: Sequence[InstalledPlugin] | None = None,
    *,
    templates_dir: Path | None = None,
    sections: Collection[str] = SECTIONS,
    file: PluginsFile | None = None,
) -> Configuration:
    """Return the checked configuration; ConfigurationError lists every problem.

    Templates in `templates_dir` take precedence over those of plugins. With `sections`, problems of
    other sections, such as an unset secret, are ignored. With `file`, the content that was read
    before, only the files that it refers to are read again.
    """
    configuration, problems = await check_configuration(
        path, installed, templates_dir=templates_dir, file=file
    )
    not_needed = SECTIONS - set(sections)
    if wrong := [problem for problem in problems if _section(problem) not in not_needed]:
        raise ConfigurationError(wrong)
    return configuration


def _section(problem: ConfigurationProblem) -> str:
    return problem.key.partition(".")[0]


async def check_configuration(
    path: Path,
    installed: Sequence[InstalledPlugin] | None = None,
    *,
    templates_dir: Path | None = None,
    file: PluginsFile | None = None,
    correct_names: bool = False,
) -> tuple[Configuration, Sequence[ConfigurationProblem]]:
    """Return the valid part of the configuration, and all problems.

    With `correct_names`, plugins whose names are misspelled, or that are used without being
    enabled, are imported too, so that the mistakes in their tables are among the problems.
    Raises ConfigurationError if the file cannot be read at all.
    """
    installed = installed_plugins() if installed is None else installed
    problems: list[ConfigurationProblem] = []
    if file is None:
        file, problems = read_plugins_file(path)
    chosen, not_chosen = choose_plugins(file, installed, path.name)
    if correct_names:
        chosen, _ = choose_plugins(enable_used_plugins(file, installed), installed, path.name)
    offers = await load_plugins(chosen)
    names = {plugin.name for plugin in installed}
    knows_enabled = "enabled" not in map(_section, problems)
    reading = ConfigurationParser(path, file, offers, names, knows_enabled=knows_enabled)
    providers = list(reading.objects("providers", file.providers, offers.providers))
    destinations = list(reading.objects("destinations", file.destinations, offers.channels))
    enrichers, investigator = list(reading.enrichers()), reading.investigator()
    environment, schedules = reading.environment(), reading.schedules()
    retention, intake = reading.retention(), reading.intake()
    reading.check_providers(destinations)
    reading.check_templates(destinations, _receivers(offers.template_paths, templates_dir))
    problems += not_chosen + reading.problems
    absent = [*offers.absent.values(), *reading.absent]
    if file.strict:
        problems += [strict_problem(path, left_out) for left_out in absent]
    configuration = Configuration(
        path=path,
        providers=providers,
        destinations=destinations,
        enrichers=enrichers,
        investigator=investigator,
        environment=environment,
        intake=intake,
        schedules=schedules,
        retention=retention,
        channels=offers.channels,
        observers=offers.observers,
        template_paths=offers.template_paths,
        absent=absent,
        strict=file.strict,
        templates_dir=templates_dir,
        inventory=PluginInventory(file, installed, offers),
        file=file,
    )
    return configuration, problems


def _receivers(template_paths: Iterable[Path], templates_dir: Path | None) -> list[str]:
    folders = (
        folder.name
        for path in (*template_paths, *([templates_dir] if templates_dir else ()))
        if path.is_dir()
        for folder in sorted(path.iterdir())
        if folder.is_dir() and not folder.name.startswith(("_", "."))
    )
    return list(dict.fromkeys(folders))


def strict_problem(path: Path, left_out: AbsentPlugin) -> ConfigurationProblem:
    """Return the problem for something left out, which a strict configuration forbids."""
    return ConfigurationProblem(
        path.name, left_out.name, left_out.reason, "fix this problem, or set `strict = false`"
    )
