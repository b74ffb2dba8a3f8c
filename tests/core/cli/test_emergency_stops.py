"""Emergency stops at the command line, against a running API."""

from __future__ import annotations

import asyncio
import json

import pytest
from sqlalchemy import URL
from typer.testing import CliRunner

from tocsin.cli import app
from tocsin.cli.emergency_stops import build_stop, describe_past_stop
from tocsin.errors import OperatorError


@pytest.fixture
def database_url(tmp_path) -> URL:
    """Which database the API stands on does not matter to its callers."""
    return URL.create("sqlite", database=str(tmp_path / "tocsin.db"))


async def run(*arguments: str) -> list[dict]:
    result = await asyncio.to_thread(CliRunner().invoke, app, [*arguments, "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.usefixtures("admin_terminal")
async def test_a_provider_is_disabled_for_a_while_and_enabled():
    asked = ("providers", "disable", "edge", "--for", "4h", "--reason", "Busy")
    [stopped] = await run(*asked)
    assert (stopped["state"], stopped["stop"]["reason"]) == ("disabled", "Busy")
    assert stopped["stop"]["until"] == "2026-11-21T16:00:00.000Z"
    [enabled] = await run("providers", "enable", "edge")
    assert (enabled["state"], enabled["stop"]) == ("waiting", None)


def test_the_length_of_a_stop_is_a_duration_or_a_time():
    assert build_stop(None, "90s", None) == {"enabled": False, "duration": "PT90S"}
    assert build_stop("2026-12-04T18:00:00Z", None, "why") == {
        "enabled": False,
        "until": "2026-12-04T18:00:00Z",
        "reason": "why",
    }
    with pytest.raises(OperatorError, match="not both"):
        build_stop("2026-12-04T18:00:00Z", "1h", None)
    with pytest.raises(OperatorError, match="--for: found 'soon'"):
        build_stop(None, "soon", None)


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({}, "disabled by ana, until someone enables it"),
        ({"until": "T1", "reason": "Busy"}, "disabled by ana (reason: Busy), until T1"),
        ({"ended_at": "T2", "ended_by": "system"}, "disabled by ana; enabled automatically at T2"),
        ({"ended_at": "T2", "ended_by": "bob"}, "disabled by ana; enabled by bob at T2"),
    ],
)
def test_a_stop_is_described_with_its_end(members, words):
    nothing = dict.fromkeys(("until", "reason", "ended_at", "ended_by"))
    assert describe_past_stop({"by": "ana", **nothing, **members}) == words
