"""`tocsin schedules` against a running API."""

from __future__ import annotations

import asyncio
import json

import pytest
from sqlalchemy import URL
from typer.testing import CliRunner

from tocsin.cli import app
from tocsin.errors import OperatorError
from tocsin.recurrence import ScheduleDefinition

NIGHTLY = ("create", "nightly", "--query", "new logins", "--cron", "0 2 * * *")
NOW = "2026-11-21T12:00:00.000Z"
NEXT = "2026-11-22T02:00:00.000Z"

pytestmark = pytest.mark.usefixtures("admin_terminal")


@pytest.fixture
def database_url(tmp_path) -> URL:
    """Which database the API stands on does not matter to its callers."""
    return URL.create("sqlite", database=str(tmp_path / "tocsin.db"))


async def run(*arguments: str) -> tuple[int, str]:
    """Run a command, and return its status and what it printed, or why it was refused."""
    result = await asyncio.to_thread(CliRunner().invoke, app, ["schedules", *arguments])
    if isinstance(result.exception, OperatorError):
        return 2, str(result.exception)
    return result.exit_code, result.stdout


async def done(*arguments: str) -> dict:
    """Return the only record that a command prints as JSON."""
    status, out = await run(*arguments, "--json")
    assert status == 0, out
    [record] = json.loads(out)
    return record


@pytest.fixture
async def nightly() -> str:
    return (await done(*NIGHTLY))["id"]


async def test_a_created_schedule_is_shown_with_when_it_runs_next():
    status, out = await run(*NIGHTLY, "--tag", "vpn", "--tag", "night")
    [line] = out.splitlines()
    upcoming = ",".join(f"2026-11-{day}T02:00:00.000Z" for day in (22, 23, 24))
    schedule_id, *rest = line.split("\t")
    assert (status, schedule_id[:4]) == (0, "sch_")
    assert rest[:10] == ["nightly", "active", "", "0 2 * * *", "", "UTC", NEXT, "", "", "0"]
    assert rest[10:15] == [upcoming, "new logins", "analyst", "", "vpn,night"]


async def test_every_member_of_a_definition_has_an_option():
    given = {
        "persona": "executive",
        "provider": "edge",
        "interval": "PT15M",
        "timezone": "Europe/Berlin",
        "jitter": "PT1M",
        "starts_at": "2026-11-22T00:00:00Z",
        "ends_at": "2026-12-22T00:00:00Z",
        "timeout": "PT5M",
        "misfire_grace": "PT2H",
        "overlap": "queue",
        "failure_limit": 3,
    }
    options = [f"--{name.replace('_', '-')}={value}" for name, value in given.items()]
    created = await done("create", "often", "--query=new logins", *options, "--tag=vpn")
    expected = {"query": "new logins", "cron": None, "tags": ["vpn"], **given}
    assert {name: created[name] for name in ScheduleDefinition.model_fields} == expected


async def test_everything_that_is_wrong_is_said_by_member():
    status, words = await run("create", "n", "--query=x", "--cron=61 * * * *", "--timezone=Berlin")
    assert status == 2
    assert "422: 2 errors" in words
    assert "cron: found '61 * * * *'; the minute field '61' is invalid" in words
    assert "timezone: found 'Berlin'" in words
    assert await run("list") == (0, "")


async def test_the_list_is_a_line_for_each_and_is_narrowed(nightly):
    line = f"{nightly}\tnightly\tactive\t\t0 2 * * *\t\tUTC\t{NEXT}\t\t\t0\n"
    assert await run("list") == (0, line)
    await run("create", "often", "--query=x", "--interval=1h", "--tag=vpn")
    _, out = await run("list", "--tag", "vpn")
    assert [line.split("\t")[1] for line in out.splitlines()] == ["often"]
    assert await run("list", "--status", "disabled") == (0, "")
    status, words = await run("list", "--status", "gone")
    assert (status, "active, disabled, deleted" in words) == (2, True)


async def test_one_is_shown(nightly):
    record = await done("show", nightly)
    assert (record["id"], record["timeout"], len(record["upcoming"])) == (nightly, "PT10M", 3)
    status, words = await run("show", "sch_0")
    assert (status, "no schedule 'sch_0'" in words) == (2, True)
    status, words = await run("show", f"sch_{'0' * 26}")
    assert (status, "404: There is no schedule" in words) == (2, True)


async def test_what_is_given_is_changed_and_the_rest_stays(nightly):
    before = await done("show", nightly)
    changed = await done("change", nightly, "--timeout", "5m", "--tag", "vpn")
    assert changed == before | {"timeout": "PT5M", "tags": ["vpn"], "revision": 2}
    assert (await done("change", nightly, "--interval", "1h"))["cron"] is None
    status, words = await run("change", nightly)
    assert (status, "provide at least one member" in words) == (2, True)


async def test_one_is_run_once_more_and_its_runs_are_listed(nightly):
    status, out = await run("run", nightly)
    run_id, *rest = out.rstrip("\n").split("\t")
    assert (status, run_id[:4]) == (0, "run_")
    assert rest[:5] == [NOW, "running", "manual", "1", ""]
    assert rest[5].startswith("ses_")
    assert await run("runs", nightly) == (0, out)
    assert await run("runs", nightly, "--state", "failed") == (0, "")
    status, words = await run("run", nightly)
    assert (
        status,
        "409: The schedule was not started: the previous run is still in progress" in words,
    ) == (
        2,
        True,
    )


async def test_every_command_takes_the_name_as_well(nightly):
    await run("create", "weekly", "--query=x", "--interval=7d")
    for command in (["show"], ["change", "--timeout=5m"], ["disable"], ["enable"]):
        name, *options = command
        assert (await done(name, "nightly", *options))["id"] == nightly
    [made] = json.loads((await run("run", "nightly", "--json"))[1])
    assert json.loads((await run("runs", "nightly", "--json"))[1])[0]["id"] == made["id"]
    assert (await done("delete", "nightly"))["id"] == nightly
    assert (await done("show", nightly))["status"] == "deleted"
    status, words = await run("show", "weakly")
    assert (status, words) == (2, "no schedule 'weakly'; did you mean 'weekly'?")


async def test_one_is_disabled_and_enabled(nightly):
    disabled = f"{nightly}\tnightly\tdisabled\tmanual\t0 2 * * *\t\tUTC\t\t\t\t0\n"
    assert await run("disable", nightly) == (0, disabled)
    enabled = await done("enable", nightly)
    assert (enabled["status"], enabled["next_run_at"]) == ("active", NEXT)


async def test_one_is_deleted(nightly):
    status, out = await run("delete", nightly)
    assert (status, out.split("\t")[2]) == (0, "deleted")
    assert await run("list") == (0, "")
    assert (await run("list", "--status", "deleted"))[1].startswith(f"{nightly}\t")


async def test_what_is_due_next_is_listed_of_all(nightly):
    often = (await done("create", "often", "--query=x", "--interval=10h"))["id"]
    lines = [
        f"2026-11-21T22:00:00.000Z\toften\t{often}",
        f"{NEXT}\tnightly\t{nightly}",
        f"2026-11-22T08:00:00.000Z\toften\t{often}",
    ]
    assert await run("upcoming") == (0, "".join(f"{line}\n" for line in lines))
    assert await run("upcoming", "--within=12h") == (0, f"{lines[0]}\n")
    status, out = await run("upcoming", "--limit=1", "--json")
    assert (status, [load["schedule_id"] for load in json.loads(out)]) == (0, [often])
