"""Installed plugins, read from package metadata alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points

GROUPS = ("tocsin.providers", "tocsin.plugins")
DEFAULT_INVESTIGATOR = "investigator"
ON_BY_DEFAULT = frozenset({"templates", DEFAULT_INVESTIGATOR, "enrichers"})


@dataclass(frozen=True, slots=True)
class InstalledPlugin:
    """One entry point; its name identifies the plugin."""

    name: str
    group: str
    distribution: str
    version: str
    entry_point: EntryPoint


def installed_plugins() -> Sequence[InstalledPlugin]:
    """Return every installed plugin, sorted by name; a name may appear twice."""
    found = (point for group in GROUPS for point in entry_points(group=group))
    return sorted(map(_describe, found), key=lambda plugin: (plugin.name, plugin.distribution))


def _describe(point: EntryPoint) -> InstalledPlugin:
    distribution = point.dist
    return InstalledPlugin(
        name=point.name,
        group=point.group,
        distribution=distribution.name if distribution else "unknown",
        version=distribution.version if distribution else "unknown",
        entry_point=point,
    )


def index_by_name(plugins: Iterable[InstalledPlugin]) -> Mapping[str, Sequence[InstalledPlugin]]:
    """Return the plugins by name."""
    names: dict[str, list[InstalledPlugin]] = {}
    for plugin in plugins:
        names.setdefault(plugin.name, []).append(plugin)
    return names


def describe_unknown(name: str) -> str:
    """Return the error for a name that no installed plugin has."""
    return f"no plugin {name!r} is installed"
