"""`tocsin console-sessions` against a running API."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta

import pytest
from sqlalchemy import URL
from typer.testing import CliRunner

from tocsin.cli import app
from tocsin.credentials import ConsoleRole, ConsoleSession, begin_session
from tocsin.errors import OperatorError

pytestmark = pytest.mark.usefixtures("admin_terminal")


@pytest.fixture
def database_url(tmp_path) -> URL:
    """Which database the API stands on does not matter to its callers."""
    return URL.create("sqlite", database=str(tmp_path / "tocsin.db"))


@pytest.fixture(autouse=True)
async def _signed_in(api, clock):
    """Sign ana in twice, and ben once."""
    for name in ("ana", "ana", "ben"):
        now = clock.now()
        end = now + timedelta(hours=8)
        session = ConsoleSession(f"oidc:{name}", name, ConsoleRole.ANALYST, end)
        await api.services.database.write(begin_session, session, now)


async def run(*arguments: str) -> tuple[int, str]:
    """Run a command, and return its status and what it printed, or why it was refused."""
    result = await asyncio.to_thread(CliRunner().invoke, app, ["console-sessions", *arguments])
    if isinstance(result.exception, OperatorError):
        return 2, str(result.exception)
    return result.exit_code, result.stdout


async def list_users(*arguments: str) -> list[str]:
    status, out = await run("list", *arguments, "--json")
    assert status == 0, out
    return sorted(record["principal"] for record in json.loads(out))


async def test_sessions_are_listed_and_ended():
    assert await list_users() == ["oidc:ana", "oidc:ana", "oidc:ben"]
    assert await list_users("--principal", "oidc:ben") == ["oidc:ben"]
    _, out = await run("list", "--principal", "oidc:ben", "--json")
    status, ended = await run("end", json.loads(out)[0]["id"], "--json")
    assert (status, json.loads(ended)) == (0, [{"ended": 1}])
    status, ended = await run("end", "--principal", "oidc:ana", "--json")
    assert (status, json.loads(ended)) == (0, [{"ended": 2}])
    assert await list_users() == []


async def test_a_refusal_says_why():
    assert await run("end") == (2, "use either the ID of a session or --principal")
    status, words = await run("end", "cse_01KAJE0M5Y7R3S9T2V4W6X8Z1B")
    assert (status, words.startswith("404: ")) == (2, True)
