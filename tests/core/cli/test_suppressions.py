"""`tocsin suppressions` against a running API."""

from __future__ import annotations

import asyncio
import json

import pytest
from sqlalchemy import URL
from typer.testing import CliRunner

from tocsin.cli import app
from tocsin.errors import OperatorError

RULE = ("create", "pentest", "--owner", "ana", "--reason", "A test")
UNTIL = ("--until", "2026-11-22T12:00:00Z")

pytestmark = pytest.mark.usefixtures("admin_terminal")


@pytest.fixture
def database_url(tmp_path) -> URL:
    """Which database the API stands on does not matter to its callers."""
    return URL.create("sqlite", database=str(tmp_path / "tocsin.db"))


async def run(*arguments: str) -> tuple[int, str]:
    """Run a command, and return its status and what it printed, or why it was refused."""
    result = await asyncio.to_thread(CliRunner().invoke, app, ["suppressions", *arguments])
    if isinstance(result.exception, OperatorError):
        return 2, str(result.exception)
    return result.exit_code, result.stdout


async def list_names(*arguments: str) -> list[str]:
    status, out = await run("list", *arguments, "--json")
    assert status == 0, out
    return [record["name"] for record in json.loads(out)]


async def test_a_rule_is_created_listed_shown_and_ended():
    status, out = await run(*RULE, *UNTIL, "--cidr", "192.0.2.0/24", "--json")
    [made] = json.loads(out)
    assert (status, made["cidr"], made["is_active"]) == (0, "192.0.2.0/24", True)
    assert await list_names("--active") == ["pentest"]
    assert json.loads((await run("show", "pentest", "--json"))[1]) == [made]
    status, out = await run("end", "pentest", "--json")
    assert (status, json.loads(out)[0]["is_active"]) == (0, False)
    assert (await list_names("--active"), await list_names()) == ([], ["pentest"])


async def test_a_refusal_names_what_is_missing():
    status, words = await run(*RULE, *UNTIL)
    assert (status, words) == (2, "use at least one of --provider, --title, --entity and --cidr")
    status, words = await run("show", "pentest")
    assert (status, words.startswith("404: ")) == (2, True)


@pytest.mark.parametrize(
    ("option", "value"), [("--until", "2036-11-22T12:00:00Z"), ("--cidr", "192.0.2.0/99")]
)
async def test_a_refusal_names_the_option(option, value):
    status, words = await run(*RULE, *UNTIL, "--provider", "sensors", option, value)
    assert (status, f"\n  {option}: " in words) == (2, True)
