"""Commands of plugins; a plugin is imported when its command is used."""

from __future__ import annotations

import asyncio

import typer

from tocsin.errors import OperatorError
from tocsin.registry import index_by_name, installed_plugins, load_commands, read_plugins_file
from tocsin.settings import load_settings


def load_plugin_commands(name: str) -> typer.Typer:
    """Return the commands of an enabled plugin; KeyError if no such plugin is enabled.

    Raises OperatorError if the plugin cannot be imported, or has no commands.
    """
    try:
        file, _ = read_plugins_file(load_settings().plugins_file)
    except OperatorError:  # it is reported by commands that need the file
        raise KeyError(name) from None
    found = index_by_name(installed_plugins()).get(name, ())
    if not file.enables(name) or len(found) != 1:
        raise KeyError(name)
    commands = asyncio.run(load_commands(found[0]))
    if not isinstance(commands, typer.Typer):
        returned = f"its hook `tocsin_commands` returned {commands!r:.100}, not a `typer.Typer`"
        raise OperatorError(f"plugin {name}: {returned}")
    return commands
