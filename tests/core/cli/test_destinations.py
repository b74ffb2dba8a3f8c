"""`tocsin destinations` against a running API."""

from __future__ import annotations

import asyncio
import json

import pytest
from sqlalchemy import URL, update
from typer.testing import CliRunner

from api_callers import DESTINATIONS, GOOD_DESTINATION, Admin
from tocsin.cli import app
from tocsin.errors import OperatorError
from tocsin.store.tables import destinations


@pytest.fixture
def database_url(tmp_path) -> URL:
    """Which database the API stands on does not matter to its callers."""
    return URL.create("sqlite", database=str(tmp_path / "tocsin.db"))


@pytest.fixture(autouse=True)
async def soar(api, admin_terminal):
    """A destination that nobody listens at."""
    admin = Admin(api, await api.admin())
    await admin.ask("POST", DESTINATIONS, 201, json=GOOD_DESTINATION)


async def run(*arguments: str) -> tuple[int, str]:
    """Run a command, and return its status and what it printed, or why it was refused."""
    result = await asyncio.to_thread(CliRunner().invoke, app, ["destinations", *arguments])
    if isinstance(result.exception, OperatorError):
        return 2, str(result.exception)
    return result.exit_code, result.stdout


async def test_the_list_is_a_line_for_each(api):
    moment = "2026-11-21T12:00:00.000Z"
    assert await run("list") == (0, f"soar\twebhook\tapi\tactive\t\t0\t\t{moment}\t\n")
    assert await run("list", "--state", "paused") == (0, "")
    status, words = await run("list", "--state", "gone")
    assert (status, "active, paused, disabled, deleted" in words) == (2, True)


async def test_one_is_shown_without_its_secrets(api):
    status, out = await run("show", "soar", "--json")
    [record] = json.loads(out)
    assert (status, record["waiting"], record["secrets"]) == (0, 0, ["secret"])
    assert GOOD_DESTINATION["settings"]["secret"] not in out
    assert (await run("show", "nobody"))[0] == 2


async def test_a_test_that_fails_says_why_with_status_1(api):
    status, out = await run("test", "soar")
    assert status == 1
    assert out.startswith("later\t")
    assert "cannot connect" in out
    status, words = await run("test", "soar", "--event", "nothing")
    assert (status, "incident-alert" in words) == (2, True)


async def test_a_paused_one_is_resumed(api):
    pausing = update(destinations).values(state="paused", reason="failing")
    await api.services.database.write(lambda connection: connection.execute(pausing))
    status, out = await run("resume", "soar")
    assert (status, out.split("\t")[3]) == (0, "active")


async def test_one_is_disabled_and_enabled(api):
    status, out = await run("disable", "soar")
    assert (status, out.split("\t")[3:5]) == (0, ["disabled", "manual"])
    status, out = await run("enable", "soar")
    assert (status, out.split("\t")[3]) == (0, "active")


async def test_one_is_deleted(api):
    status, out = await run("delete", "soar")
    assert (status, out.split("\t")[3]) == (0, "deleted")
    assert await run("list") == (0, "")
