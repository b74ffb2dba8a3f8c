"""`tocsin apply`, as an operator runs it, and what nodes make of a file that was not applied."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from getpass import getuser
from pathlib import Path

import pytest
from aiohttp.test_utils import TestClient, TestServer
from cryptography.fernet import Fernet
from sqlalchemy import select
from typer.testing import CliRunner

from tocsin.cli import app
from tocsin.delivery import ManagedBy, Reason, State, Written, load_destination
from tocsin.delivery.destinations.changing import create
from tocsin.errors import OperatorError
from tocsin.node import open_node
from tocsin.settings import Settings
from tocsin.store.tables import audit, destinations

SECRET = "whsec_" + "QUJD" * 10


@pytest.fixture
def write(tmp_path):
    """Write a `plugins.toml` with these destinations, each with settings of its own."""

    def write(**settings: str) -> Path:
        tables = (
            f'[destinations.{name}]\nplugin = "webhook"\nurl = "https://{name}.example.org/"\n'
            f'secret = {{ env = "SOC_SECRET" }}\n{more}\n'
            for name, more in settings.items()
        )
        path = tmp_path / "plugins.toml"
        path.write_text('enabled = ["webhook"]\n' + "".join(tables))
        return path

    return write


@pytest.fixture
def run(migrated_url, tmp_path):
    """Run `tocsin apply`, and return its status and what it printed, or why it was refused."""
    own = {
        "TOCSIN_DATABASE_URL": migrated_url.render_as_string(hide_password=False),
        "TOCSIN_PLUGINS_FILE": str(tmp_path / "plugins.toml"),
        "SOC_SECRET": SECRET,
    }

    async def run(*arguments: str, **variables: str) -> tuple[int, str]:
        invoke = partial(CliRunner().invoke, app, ["apply", *arguments], env=own | variables)
        result = await asyncio.to_thread(invoke)
        if isinstance(result.exception, OperatorError):
            assert result.stdout == ""
            return 2, str(result.exception)
        return result.exit_code, result.stdout

    return run


async def test_it_shows_what_it_took_and_a_second_time_nothing(run, write, database):
    write(soc="", desk="")
    assert await run() == (0, "desk\tcreate\nsoc\tcreate\n")
    assert await run() == (0, "")
    write(soc='timeout = "9s"')
    assert await run() == (0, "desk\tdisable\nsoc\tchange\n")
    write(soc='timeout = "9s"', desk="")
    status, out = await run("--json")
    assert (status, json.loads(out)) == (0, [{"destination": "desk", "action": "restore"}])
    made = await database.read(load_destination, "soc")
    assert made.settings["secret"] == {"env": "SOC_SECRET"}
    assert (made.created_by, made.revision) == (f"local:{getuser()}", 2)


async def test_each_step_is_an_entry_of_the_audit_log(run, write, database):
    write(soc="")
    await run()
    write(soc='timeout = "9s"')
    await run()
    write()
    await run()
    write(soc="")
    await run()
    query = select(audit.c.actor, audit.c.action, audit.c.target).order_by(audit.c.id)
    entries = await database.read(lambda connection: connection.execute(query).all())
    who = f"local:{getuser()}"
    actions = ("create", "change", "disable", "change")
    expected = [(who, f"destination.{action}", "destination:soc") for action in actions]
    assert [tuple(entry) for entry in entries] == expected


async def test_a_dry_run_does_nothing(run, write, database):
    write(soc="")
    assert await run("--dry-run") == (0, "soc\tcreate\n")
    for table in (destinations, audit):
        query = select(table)
        assert await database.read(lambda c, query=query: c.execute(query).all()) == []


async def test_what_cannot_be_applied_changes_nothing(run, write, database, clock):
    api = Written("soc", "webhook", {}, ManagedBy.API, b"x")
    await database.write(create, api, "ana", clock.now())
    write(alpha="", soc="")
    status, words = await run()
    assert status == 2
    assert "destinations.soc: a destination of this name was made over HTTP" in words
    write(alpha="", beta='timeout = "soon"')
    status, words = await run()
    assert status == 2
    assert "destinations.beta.timeout" in words
    assert await database.read(load_destination, "alpha") is None


async def differing(settings: Settings) -> list[str]:
    """Return what a node says that its file has otherwise."""
    async with (
        open_node(settings) as node,
        TestClient(TestServer(node.app)) as client,
        client.get("/readyz") as response,
    ):
        return (await response.json())["differing"]


@pytest.fixture
def settings(migrated_url, tmp_path, monkeypatch) -> Settings:
    monkeypatch.setenv("SOC_SECRET", SECRET)
    return Settings(
        database_url=migrated_url.render_as_string(hide_password=False),
        plugins_file=tmp_path / "plugins.toml",
        encryption_key=Fernet.generate_key().decode(),
    )


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
async def test_a_node_says_what_was_not_applied_and_works_by_what_was(
    run, write, settings, database
):
    write(soc="", desk="")
    assert await differing(settings) == ["desk: create", "soc: create"]
    await run()
    assert await differing(settings) == []
    write(soc='timeout = "9s"')
    assert await differing(settings) == ["desk: disable", "soc: change"]
    assert (await database.read(load_destination, "desk")).state is State.ACTIVE


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_node_that_is_alone_applies_its_file_itself(write, settings, database):
    write(soc="")
    assert await differing(settings) == []
    write()
    assert await differing(settings) == []
    assert (await database.read(load_destination, "soc")).reason is Reason.REMOVED


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_templates_of_ones_own_are_known_to_the_file(run, write, tmp_path):
    own = tmp_path / "own"
    write(soc='template = "pager"')
    status, words = await run(TOCSIN_TEMPLATES_DIR=str(own))
    assert (status, "TOCSIN_TEMPLATES_DIR" in words) == (2, True)
    (own / "pager").mkdir(parents=True)
    assert "no template 'pager'" in (await run())[1]
    assert await run(TOCSIN_TEMPLATES_DIR=str(own)) == (0, "soc\tcreate\n")
