"""Installed plugins, read from package metadata alone."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path

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


def find_code(plugin: InstalledPlugin) -> Sequence[Path]:
    """Return the folders of a plugin's package, or the file of its module, without importing it."""
    spec = find_spec(plugin.entry_point.module.partition(".")[0])
    if spec is None:
        return ()
    if spec.submodule_search_locations is not None:
        return [Path(folder) for folder in spec.submodule_search_locations]
    return [Path(spec.origin)] if spec.origin else ()


def list_declared_hooks(plugin: InstalledPlugin) -> Sequence[str]:
    """Return the hooks that the source of a plugin's module declares, without importing it.

    None are found in a module that imports its hooks from another one.
    """
    _, *rest = plugin.entry_point.module.split(".")
    for place in find_code(plugin):
        path = place.joinpath(*rest)
        for file in (path / "__init__.py", path.with_suffix(".py")):
            if file.is_file():
                return _find_hooks(file)
    return ()


def _find_hooks(file: Path) -> Sequence[str]:
    with suppress(OSError, SyntaxError, ValueError):
        return [
            node.name
            for node in ast.parse(file.read_bytes()).body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and node.name.startswith("tocsin_")
        ]
    return ()
