"""`tocsin people` against a running API."""

from __future__ import annotations

import asyncio
import json

import pytest
from sqlalchemy import URL
from typer.testing import CliRunner

from passkey_user import PasskeyUser
from tocsin.cli import app
from tocsin.errors import OperatorError

pytestmark = pytest.mark.usefixtures("admin_terminal")


@pytest.fixture
def database_url(tmp_path) -> URL:
    """Which database the API stands on does not matter to its callers."""
    return URL.create("sqlite", database=str(tmp_path / "tocsin.db"))


async def run(*arguments: str) -> tuple[int, str]:
    """Run a command, and return its status and what it printed, or why it was refused."""
    result = await asyncio.to_thread(CliRunner().invoke, app, ["people", *arguments])
    if isinstance(result.exception, OperatorError):
        return 2, str(result.exception)
    return result.exit_code, result.stdout


async def test_a_person_is_created_with_a_link_alone_on_standard_output(api):
    status, link = await run("create", "ben", "--role", "analyst")
    assert status == 0
    assert (await PasskeyUser(api).enroll(link.strip().partition("#")[2])).status == 303
    status, out = await run("list")
    assert (status, out.split("\t")[:4]) == (0, ["ben", "analyst", "active", "1"])
    status, another = await run("link", "ben", "--expires-in-hours", "1")
    assert (status, another.count("\n"), another == link) == (0, 1, False)


async def test_a_person_is_changed_disabled_enabled_and_deleted(api):
    _, link = await run("create", "ben", "--role", "analyst")
    await PasskeyUser(api).enroll(link.strip().partition("#")[2], label="Laptop")
    [passkey] = json.loads((await run("passkeys", "ben", "--json"))[1])
    assert passkey["label"] == "Laptop"
    for arguments, column, value in (
        (("change", "ben", "--role", "Viewer"), 1, "viewer"),
        (("disable", "ben"), 2, "disabled"),
        (("enable", "ben"), 2, "active"),
        (("delete-passkey", "ben", passkey["id"]), 3, "0"),
        (("delete", "ben"), 0, "ben"),
    ):
        status, out = await run(*arguments)
        assert (status, out.split("\t")[column]) == (0, value), arguments
    status, words = await run("passkeys", "ben")
    assert (status, words.startswith("404: ")) == (2, True)
