"""`tocsin incidents` against a running API."""

from __future__ import annotations

import asyncio
import json
import os

import pytest
from sqlalchemy import URL
from typer.testing import CliRunner

from api_callers import Admin
from incident_rows import add_incidents
from tocsin.cli import app
from tocsin.errors import OperatorError


@pytest.fixture
def database_url(tmp_path) -> URL:
    """Which database the API stands on does not matter to its callers."""
    return URL.create("sqlite", database=str(tmp_path / "tocsin.db"))


@pytest.fixture(autouse=True)
async def _terminal(api, monkeypatch) -> None:
    """The variables of an analyst's terminal."""
    for name in [name for name in os.environ if name.startswith("TOCSIN_")]:
        monkeypatch.delenv(name)
    admin = Admin(api, {"Authorization": f"Bearer {await api.token()}"})
    key = await admin.create_key(scopes=["incidents:read", "incidents:write"])
    monkeypatch.setenv("TOCSIN_URL", str(api.client.make_url("/")))
    monkeypatch.setenv("TOCSIN_API_KEY", key["api_key"])


async def run(*arguments: str) -> tuple[int, str]:
    """Run a command, and return its status and what it printed, or why it was refused."""
    result = await asyncio.to_thread(CliRunner().invoke, app, ["incidents", *arguments])
    if isinstance(result.exception, OperatorError):
        return 2, str(result.exception)
    return result.exit_code, result.stdout


async def test_incidents_are_listed_filtered_and_shown(api):
    await api.services.database.write(add_incidents, entities=[("ip", "203.0.113.7")])
    status, out = await run("list")
    [line] = out.splitlines()
    assert (status, line.split("\t")[0]) == (0, "1")
    [record] = json.loads((await run("list", "--json"))[1])
    assert (record["number"], "entities" in record) == (1, True)
    severity = record["severity"]
    others = {"Low", "High"} - {severity}
    assert (await run("list", "--severity", severity.lower())) == (0, out)
    assert (await run("list", "--severity", others.pop())) == (0, "")
    assert (await run("list", "--status", "closed")) == (0, "")
    status, out = await run("show", "1")
    assert (status, "ip:203.0.113.7" in out) == (0, True)
    assert json.loads((await run("show", "1", "--json"))[1])[0]["number"] == 1
    status, words = await run("show", "2")
    assert (status, words.startswith("404: ")) == (2, True)


async def test_incidents_are_triaged(api):
    await api.services.database.write(add_incidents, 2)
    assert (await run("assign", "1", "2", "--to", "ana"))[1].splitlines()[0].startswith("1\tana\t")
    for arguments in (
        ("assign", "2", "--nobody"),
        ("acknowledge", "1"),
        ("classify", "1", "--as", "DUPLICATE", "--reason", "as 2", "--source", "person"),
        ("tag", "1", "--add", "vip", "--add", "old"),
        ("tag", "1", "--remove", "old"),
        ("link", "1", "--add", "2"),
        ("watch", "1", "--add", "ben"),
        ("comment", "1", "two\nlines"),
    ):
        status, out = await run(*arguments)
        assert status == 0, out
    [record] = json.loads((await run("show", "1", "--json"))[1])
    triage = record["triage"]
    names = ("assignee", "disposition", "disposition_reason", "disposition_source", "tags")
    assert [triage[name] for name in names] == ["ana", "duplicate", "as 2", "person", ["vip"]]
    assert (triage["linked_incidents"], triage["watchers"]) == ([2], ["ben"])
    assert triage["acknowledged_by"] is not None
    [line] = (await run("comments", "1"))[1].splitlines()
    assert line.endswith("\ttwo lines")
    for arguments, numbers in (
        (("--assignee", "none"), ["2"]),
        (("--disposition", "duplicate", "--tag", "VIP", "--watcher", "ben"), ["1"]),
        (("--title", "INCIDENT 2", "--provider", "sensors"), ["2"]),
        (("--entity", "192.0.2.250"), []),
        (("--technique", "T1499"), []),
        (("--unacknowledged",), ["2"]),
    ):
        found = (await run("list", *arguments))[1].splitlines()
        assert [each.split("\t")[0] for each in found] == numbers
    for arguments in (["assign", "1"], ["classify", "1"], ["tag", "1"]):
        status, words = await run(*arguments)
        assert (status, words.startswith("use ")) == (2, True)
    await run("classify", "1", "--clear")
    [record] = json.loads((await run("show", "1", "--json"))[1])
    assert record["triage"]["disposition"] is None


async def test_one_missing_incident_does_not_keep_the_others_from_being_changed(api):
    await api.services.database.write(add_incidents, 2)
    arguments = ["incidents", "classify", "1", "999", "2", "998", "--as", "false-positive"]
    result = await asyncio.to_thread(CliRunner().invoke, app, arguments)
    assert [line.split("\t")[0] for line in result.stdout.splitlines()] == ["1", "2"]
    assert isinstance(result.exception, OperatorError)
    assert str(result.exception).splitlines() == [
        "incidents 999, 998: 404: There is no incident with this number.",
        "changed 2 of 4 incidents",
    ]
    records = json.loads((await run("list", "--json"))[1])
    assert {each["triage"]["disposition"] for each in records} == {"false-positive"}


async def test_changes_stop_at_an_error_that_concerns_every_incident(api, monkeypatch):
    await api.services.database.write(add_incidents, 2)
    monkeypatch.setenv("TOCSIN_API_KEY", "sk_live_0")
    status, reason = await run("tag", "1", "2", "--add", "vip")
    assert (status, reason.startswith("incident 1: 401: ")) == (2, True)
    assert reason.endswith("\nincident 2: not tried\nchanged 0 of 2 incidents")


async def test_commands_that_change_incidents_name_the_scope_that_they_require(monkeypatch):
    monkeypatch.setenv("TOCSIN_API_KEY", "")
    for arguments in (("classify", "1", "--as", "duplicate"), ("comment", "1", "seen")):
        status, reason = await run(*arguments)
        assert (status, "--scope incidents:write" in reason) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "key", "words"),
    [
        (["list"], "", "no API key: set TOCSIN_API_KEY"),
        (["list"], "sk_live_0", "401: "),
        (["list", "--timespan", "soon"], None, "timespan: found 'soon'"),
    ],
)
async def test_refusals_are_explained(monkeypatch, arguments, key, words):
    if key is not None:
        monkeypatch.setenv("TOCSIN_API_KEY", key)
    status, reason = await run(*arguments)
    assert (status, words in reason) == (2, True)
