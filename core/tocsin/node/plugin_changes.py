"""Plugins that a new configuration starts and stops."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from tocsin.errors import ConfigurationError, ConfigurationProblem
from tocsin.node.digests import digest_plugins, list_plugins
from tocsin.registry import (
    AbsentPlugin,
    Configuration,
    LivePlugin,
    PluginFactory,
    start_plugin,
    table_path,
)


@dataclass(slots=True)
class PreparedPlugins:
    """Plugins that were started for a new configuration, and those that it no longer contains."""

    digests: dict[str, object]
    """Digest of each table, by its path."""
    started: dict[str, LivePlugin[Any]] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    absent: list[AbsentPlugin] = field(default_factory=list)

    @property
    def changed(self) -> set[str]:
        """Tables whose plugins are started or stopped."""
        return self.gone | self.started.keys()

    def select(self, section: str) -> dict[str, Any]:
        """Return the started plugins of a section, by their names."""
        return {
            path.partition(".")[2]: live.plugin
            for path, live in self.started.items()
            if path.partition(".")[0] == section
        }

    def update(self, section: str, plugins: dict[str, Any]) -> None:
        """Replace the plugins of a section."""
        for name in select_names(section, self.gone):
            plugins.pop(name, None)
        plugins.update(self.select(section))

    async def close(self) -> None:
        """Close what was started."""
        await asyncio.gather(*(live.close() for live in self.started.values()))


async def prepare_plugins(
    configuration: Configuration,
    factory: PluginFactory,
    before: Mapping[str, object],
    running: AbstractSet[str],
) -> PreparedPlugins:
    """Start what is new or differs from the digests `before`; ConfigurationError if that fails.

    A plugin that was not running before may fail to start again.
    """
    digests = await asyncio.to_thread(digest_plugins, configuration)
    prepared = PreparedPlugins(digests, absent=list(configuration.absent))
    problems, able = [], set()
    for section, item in list_plugins(configuration):
        path = table_path(section, item.name)
        if item.kind is None:
            continue
        able.add(path)
        is_same = digests[path] == before.get(path)
        if is_same and path in running:
            continue
        made = await start_plugin(section, item, factory)
        if isinstance(made, LivePlugin):
            prepared.started[path] = made
        elif is_same:
            prepared.absent.append(made)
        else:
            file, expected = (
                configuration.path.name,
                "fix this problem; until then, the previous configuration stays in effect",
            )
            problems.append(ConfigurationProblem(file, path, made.reason, expected))
    if problems:
        await prepared.close()
        raise ConfigurationError(problems)
    prepared.gone = set(running - able)
    return prepared


def select_names(section: str, paths: Iterable[str]) -> list[str]:
    """Return the names in the paths of a section's tables."""
    return [name for of, _, name in (path.partition(".") for path in paths) if of == section]


def replace_items(items: dict[str, Any], others: Mapping[str, Any]) -> None:
    """Make a shared mapping equal to another, without emptying it in between."""
    items.update(others)
    for name in items.keys() - others.keys():
        del items[name]
