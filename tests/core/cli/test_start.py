"""The command line starts without what its commands need."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from inspect import cleandoc
from typing import Any

import pytest
import typer

import tocsin
from tocsin.cli import app
from tocsin.cli.commands import COMMANDS, CommandModules

HEAVY = {"aiohttp", "alembic", "jinja2", "pydantic", "sqlalchemy"}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_says_of_each_what_its_own_help_begins_with(name):
    help_text = cleandoc(CommandModules()[name].help or "")
    assert help_text.splitlines()[0] == COMMANDS[name].summary


def list_imports(*arguments: str) -> set[str]:
    """Return the top-level packages that a command imports."""
    program = (
        "import sys; from tocsin.cli import app\n"
        f"try: app({arguments!r})\n"
        "finally: print(*{name.partition('.')[0] for name in sys.modules}, file=sys.stderr)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return set(ended.stderr.split())


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_and_version_import_no_command(option):
    assert not HEAVY & list_imports(option)


@pytest.mark.full
def test_commands_for_incidents_import_no_server():
    assert not {"aiohttp", "alembic"} & list_imports("incidents", "--help")


UNUSED_WHEN_IDLE = {
    *("aiosmtplib", "alembic", "asyncpg", "fido2", "jsonschema", "markdown_it", "opentelemetry"),
    *("pygments", "rich", "tocsin_connectors"),
}


def test_an_idle_node_does_not_import_what_only_some_configurations_use(tmp_path):
    program = (
        "import asyncio, sys\n"
        "import tocsin.cli.serve\n"
        "from tocsin.node import open_node\n"
        "from tocsin.settings import load_settings\n"
        "async def start():\n"
        "    async with open_node(load_settings()): pass\n"
        "asyncio.run(start())\n"
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    (tmp_path / "plugins.toml").touch()
    environment = os.environ | {"TOCSIN_ENCRYPTION_KEY": "A" * 43 + "="}
    for _ in range(2):  # the first start creates the schema
        ended = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=True,
            cwd=tmp_path,
            env=environment,
        )
    assert not UNUSED_WHEN_IDLE & set(ended.stdout.split())


@pytest.mark.parametrize("name", tocsin.__all__)
def test_every_public_name_can_be_imported(name):
    assert getattr(tocsin, name) is not None


PRINT_NO_DATA = {
    *("completion", "demo", "init", "serve"),  # what they print is for a person or a shell
    *("admin revoke-all", "admin rotate-signing-keys", "investigations cancel", "sync cancel"),
}


def list_commands(command: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every command with its names."""
    if not hasattr(command, "commands"):
        yield path, command
        return
    for name, child in command.commands.items():
        yield from list_commands(child, f"{path} {name}".strip())


def test_every_command_that_prints_data_prints_it_as_json_too():
    options = {
        path: {option for parameter in command.params for option in parameter.opts}
        for path, command in list_commands(typer.main.get_command(app))
    }
    assert {path for path, found in options.items() if "--json" not in found} == PRINT_NO_DATA
