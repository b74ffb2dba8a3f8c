"""The command line starts without what its commands need."""

from __future__ import annotations

import subprocess
import sys
from inspect import cleandoc

import pytest

import tocsin
from tocsin.cli.commands import COMMANDS, CommandModules

HEAVY = {"aiohttp", "alembic", "jinja2", "pydantic", "sqlalchemy"}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_says_of_each_what_its_own_help_begins_with(name):
    help_text = cleandoc(CommandModules()[name].help or "")
    assert help_text.splitlines()[0] == COMMANDS[name].summary


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_and_version_import_no_command(option):
    program = (
        "import sys; from tocsin.cli import app\n"
        f"try: app([{option!r}])\n"
        "finally: print(*{name.partition('.')[0] for name in sys.modules}, file=sys.stderr)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert not HEAVY & set(ended.stderr.split())


@pytest.mark.parametrize("name", tocsin.__all__)
def test_every_public_name_can_be_imported(name):
    assert getattr(tocsin, name) is not None
