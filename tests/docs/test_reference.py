"""The reference pages name everything that there is."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from tocsin import hookspecs
from tocsin.cli import app
from tocsin.settings import PREFIX, Settings

DOCS = Path(__file__).parents[2] / "docs"


def page(name: str) -> str:
    return (DOCS / name).read_text()


@pytest.mark.parametrize("name", Settings.model_fields)
def test_every_setting_is_documented(name):
    assert f"| `{PREFIX}{name.upper()}` |" in page("reference/settings.md")


def test_no_setting_is_documented_that_is_not_there():
    documented = re.findall(r"^\| `TOCSIN_(\w+)`", page("reference/settings.md"), re.MULTILINE)
    assert {name.lower() for name in documented} == set(Settings.model_fields)


def commands(group: typer.Typer = app, prefix: str = "tocsin") -> Iterator[str]:
    command = typer.main.get_command(group)
    for name, sub in command.commands.items():
        if hasattr(sub, "commands"):
            yield from (f"{prefix} {name} {leaf}" for leaf in sub.commands)
        else:
            yield f"{prefix} {name}"


def test_the_page_of_commands_lists_each_and_no_other():
    documented = re.findall(r"^\| `(tocsin [a-z -]+)` \|", page("reference/cli.md"), re.MULTILINE)
    assert sorted(documented) == sorted(commands())


def hooks() -> list[tuple[str, str]]:
    found = []
    for name, function in inspect.getmembers(hookspecs, inspect.isfunction):
        if name.startswith("tocsin_"):
            signature = inspect.signature(function)
            summary = inspect.getdoc(function)
            found.append((f"### `{name}{str(signature).replace(chr(39), '')}`", summary))
    return found


@pytest.mark.parametrize(("heading", "summary"), hooks())
def test_every_hook_is_documented_with_its_signature(heading, summary):
    assert f"{heading}\n\n{summary}\n" in page("plugin-authors/seams.md")


async def test_the_provider_of_the_page_works(database, clock):
    import structlog

    from tocsin import Tools
    from tocsin.events import Bells
    from tocsin.incidents import ProviderSync, Surroundings

    [source] = re.findall(r"```python\n(.*?)```", page("plugin-authors/seams.md"), re.DOTALL)
    namespace: dict = {"__name__": "acme"}
    exec(compile(source, "acme", "exec"), namespace)
    kind = namespace["tocsin_providers"]()
    tools = Tools(name="acme", http=None, clock=clock, log=structlog.get_logger())
    provider = kind(kind.Settings(plugin="acme"), tools)
    around = Surroundings(database, clock, Bells(), "https://tocsin.example.org")
    sync = ProviderSync(provider, around)
    await sync.read_all()
    await sync.read_all()

    def titles(connection):
        from sqlalchemy import select

        from tocsin.store.tables import incidents

        return list(connection.scalars(select(incidents.c.title)))

    assert await database.read(titles) == ["hello"]
