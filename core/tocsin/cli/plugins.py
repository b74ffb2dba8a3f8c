"""`tocsin plugins`: list, inspect and create plugins."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import structlog
import typer

from tocsin.cli.options import choice_option
from tocsin.cli.output import AsJson, Columns, Wide, print_json, print_records, print_text
from tocsin.cli.scaffold import Scaffold
from tocsin.logs import configure_logs
from tocsin.registry import (
    InstalledPlugin,
    OfferedKind,
    PluginDescription,
    PluginsFile,
    SettingDescription,
    describe_plugin,
    explain_absence,
    index_by_name,
    installed_plugins,
    list_declared_hooks,
    read_plugins_file,
)
from tocsin.settings import load_settings

app = typer.Typer(no_args_is_help=True, help="List, inspect and create plugins.")

_COLUMNS = Columns(
    ("name", "offers", "enabled", "distribution", "version", "absent"),
    brief=("name", "enabled", "version", "offers", "absent"),
)
_PARTS = Columns(("part", "name", "value", "detail"))


class ScaffoldKind(StrEnum):
    """Kind of a new plugin."""

    PROVIDER = "provider"
    CHANNEL = "channel"
    CASE_CHANNEL = "case-channel"
    TRACKER = "tracker"
    ENRICHER = "enricher"
    INVESTIGATOR = "investigator"


@app.command("list")
def list_plugins(as_json: AsJson = False, wide: Wide = False) -> None:
    """List installed and enabled plugins without importing them."""
    file, _ = read_plugins_file(load_settings().plugins_file)
    print_records(list(_list_records(file)), _COLUMNS, as_json=as_json, wide=wide)


def _list_records(file: PluginsFile) -> Iterator[dict[str, Any]]:
    known = index_by_name(installed_plugins())
    for name in dict.fromkeys((*known, *file.enabled)):
        enabled = file.enables(name)
        plugins: Sequence[InstalledPlugin | None] = known.get(name) or [None]
        for plugin in plugins:
            yield {
                "name": name,
                "offers": _offers(plugin),
                "enabled": enabled,
                "distribution": plugin and plugin.distribution,
                "version": plugin and plugin.version,
                "absent": explain_absence(name, known, file) if enabled else None,
            }


def _offers(plugin: InstalledPlugin | None) -> str | None:
    """Return the names of the plugin's hooks without the prefix, such as `providers, event`."""
    hooks = () if plugin is None else list_declared_hooks(plugin)
    return ", ".join(hook.removeprefix("tocsin_").replace("_", " ") for hook in hooks) or None


@app.command()
def explain(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the plugin.")],
    *,
    traceback: Annotated[
        bool, typer.Option("--traceback", help="Show the traceback if the import fails.")
    ] = False,
    as_json: AsJson = False,
    wide: Wide = False,
) -> None:
    """Show what a plugin provides, its settings and its errors.

    Imports the plugin.

    Exit status: 0 if the plugin can be used, 1 if it cannot.
    """
    settings = load_settings()
    configure_logs(settings.log_format, settings.log_level)
    if not traceback:
        structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    file, _ = read_plugins_file(settings.plugins_file)
    found = asyncio.run(describe_plugin(name, file, installed_plugins()))
    if as_json:
        print_json(found)
    else:
        print_records(list(_list_parts(found)), _PARTS, as_json=False, wide=wide)
    if found.broken:
        raise typer.Exit(1)


def _list_parts(found: PluginDescription) -> Iterator[dict[str, str | None]]:
    state = "enabled" if found.enabled else "not enabled"
    yield _record("plugin", found.name, f"{found.distribution} {found.version}", state)
    if found.absent:
        yield _record("absent", found.name, None, found.absent)
    for table in found.used_by:
        yield _record("used by", table)
    for hook in found.hooks:
        yield _record("hook", hook)
    for kind in found.kinds:
        yield from _kind(kind)


def _kind(kind: OfferedKind) -> Iterator[dict[str, str | None]]:
    is_single = kind.section in {"investigator", "intake"}
    table = kind.section if is_single else f"{kind.section}.<name>"
    yield _record("offers", kind.name, f"for [{table}]", kind.summary)
    for capability in kind.capabilities:
        yield _record("capability", capability)
    for stream in kind.streams or ():
        yield _record("stream", stream)
    for permission in kind.permissions:
        yield _record("permission", permission)
    for setting in kind.settings:
        yield _setting(setting)


def _setting(setting: SettingDescription) -> dict[str, str | None]:
    part = "common setting" if setting.common else "setting"
    default = "required" if setting.required else setting.default
    value = setting.type if default is None else f"{setting.type}; {default}"
    return _record(part, setting.name, value, setting.description)


def _record(
    part: str, name: str, value: str | None = None, detail: str | None = None
) -> dict[str, str | None]:
    return {"part": part, "name": name, "value": value, "detail": detail}


@app.command()
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the new plugin.")],
    *,
    kind: Annotated[ScaffoldKind, choice_option(ScaffoldKind, help="Kind of plugin.")],
    folder: Annotated[
        Path, typer.Option(help="Directory in which to create the plugin's directory.")
    ] = Path(),
    as_json: AsJson = False,
) -> None:
    """Create a working plugin with tests and a README.

    Prints the path of the new directory on standard output, and the next steps on standard error.
    """
    scaffold = Scaffold(name, kind.value)
    made = scaffold.make(folder, [plugin.name for plugin in installed_plugins()])
    if as_json:
        print_json({"folder": str(made)})
        return
    print_text(made)
    print_text(_NEXT.format(folder=made, lines=scaffold.lines()), end="", file=sys.stderr)


_NEXT = """
Run the plugin's tests:

  cd {folder}
  pip install --editable '.[test]'
  python -m pytest

To enable the plugin, add these settings to your plugins.toml. The plugins.toml in the new
directory also contains them.

{lines}"""
