"""The reference pages name everything that there is."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
import typer
from sqlalchemy import select

from incident_rows import add_incidents
from tocsin import Entity, EntityKind, Environment, Persona, hookspecs
from tocsin.cli import app
from tocsin.events import Notifiers
from tocsin.incidents import ProviderSync, SyncContext
from tocsin.investigations import (
    HistoryAnswers,
    InvestigationWorker,
    create_session,
    load_report,
    replay_session,
)
from tocsin.settings import PREFIX, SECRETS, Settings
from tocsin.store.tables import incidents
from tocsin.testing import make_tools

DOCS = Path(__file__).parents[2] / "docs"


def page(name: str) -> str:
    return (DOCS / name).read_text()


SETTINGS = {*Settings.model_fields, *(f"{name}_file" for name in SECRETS)}


@pytest.mark.parametrize("name", sorted(SETTINGS))
def test_every_setting_is_documented(name):
    assert f"| `{PREFIX}{name.upper()}` |" in page("reference/settings.md")


def test_no_setting_is_documented_that_is_not_there():
    documented = re.findall(r"^\| `TOCSIN_(\w+)`", page("reference/settings.md"), re.MULTILINE)
    assert {name.lower() for name in documented} == SETTINGS


def commands(group: typer.Typer = app, prefix: str = "tocsin") -> Iterator[str]:
    command = typer.main.get_command(group)
    for name, sub in command.commands.items():
        if getattr(sub, "invoke_without_command", True):
            yield f"{prefix} {name}"
        if hasattr(sub, "commands"):
            yield from (f"{prefix} {name} {leaf}" for leaf in sub.commands)


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


PLUGINS = re.findall(r"```python\n(.*?)```", page("plugin-authors/seams.md"), re.DOTALL)


def offered(hook: str, index: int = 0):
    """Return what a plugin of the page offers that has this hook, by default the first."""
    source = [plugin for plugin in PLUGINS if f"def {hook}(" in plugin][index]
    namespace: dict = {"__name__": "acme"}
    exec(compile(source, "acme", "exec"), namespace)
    return namespace[hook]()


async def test_the_provider_of_the_page_works(database, clock):
    kind = offered("tocsin_providers")
    provider = kind(kind.Settings(plugin="acme"), make_tools(None, "acme", clock))
    around = SyncContext(database, clock, Notifiers(), "https://tocsin.example.org")
    sync = ProviderSync(provider, around)
    await sync.read_all()
    await sync.read_all()
    titles = select(incidents.c.title)
    assert await database.read(lambda session: list(session.scalars(titles))) == ["hello"]


async def test_the_enricher_of_the_page_works(clock):
    [kind] = offered("tocsin_enrichers")
    settings = kind.Settings(plugin="acme", accounts={"ana": "the directory"})
    ana, ben = Entity(EntityKind.USER, "ana"), Entity(EntityKind.USER, "ben")
    [known] = await kind(settings, make_tools(None, "acme", clock)).enrich([ben, ana])
    assert (known.entity, known.summary) == (ana, "It administers the directory")


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_the_investigator_of_the_page_works_and_can_be_replayed(database, clock):
    kind = offered("tocsin_investigators")
    investigator = kind(kind.Settings(), make_tools(None, "acme", clock))
    history = HistoryAnswers(database, {}, Environment())
    node = InvestigationWorker(
        database, clock, Notifiers(), 1, investigator=investigator, answer=history
    )
    await database.write(partial(add_incidents, now=clock.now(), entities=[("ip", "203.0.113.9")]))
    session_id = await database.write(
        partial(
            create_session,
            query="203.0.113[.]9?",
            persona=Persona.ANALYST,
            provider=None,
            by="ana",
            now=clock.now() + timedelta(seconds=1),
        )
    )
    await node.claim()
    await asyncio.gather(*node._tasks.values())
    report = await database.read(load_report, session_id)
    assert (report.title, report.incidents) == ("Incidents of 203.0.113.9", (1,))
    assert (await replay_session(database, session_id, investigator)).is_same
