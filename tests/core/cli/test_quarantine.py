"""`tocsin quarantine retry` against a running API."""

from __future__ import annotations

import asyncio
import json

import pytest
from sqlalchemy import URL
from typer.testing import CliRunner

from api_server import PUSHED
from incident_rows import add_quarantined
from tocsin.cli import app
from tocsin.errors import OperatorError

pytestmark = pytest.mark.usefixtures("admin_terminal")


@pytest.fixture
def database_url(tmp_path) -> URL:
    """Which database the API stands on does not matter to its callers."""
    return URL.create("sqlite", database=str(tmp_path / "tocsin.db"))


async def retry(*records: int) -> tuple[int, str]:
    """Retry records; return the status and what was printed, or why it was refused."""
    arguments = ["quarantine", "retry", *map(str, records), "--json"]
    result = await asyncio.to_thread(CliRunner().invoke, app, arguments)
    if isinstance(result.exception, OperatorError):
        return 2, str(result.exception)
    return result.exit_code, result.stdout


async def test_a_push_is_retried_once(api, clock):
    content = b'{"external_id": "case-17", "title": "Odd sign-in"}'
    await api.services.database.write(add_quarantined, PUSHED, clock.now(), content=content)
    status, out = await retry(1)
    [counts] = json.loads(out)
    assert (status, counts["id"], counts["new"]) == (0, 1, 1)
    status, words = await retry(1)
    assert (status, words) == (2, "409: The record was already retried.")


async def test_a_push_that_still_does_not_map_is_refused_with_the_reason(api, clock):
    await api.services.database.write(add_quarantined, PUSHED, clock.now())
    status, words = await retry(1)
    assert (status, words.startswith("409: The record still cannot be parsed: ")) == (2, True)
    status, words = await retry(2)
    assert (status, words.startswith("404: ")) == (2, True)


async def test_several_pushes_are_retried_at_once(api, clock):
    content = b'{"external_id": "case-17", "title": "Odd sign-in"}'
    await api.services.database.write(add_quarantined, PUSHED, clock.now(), 52, content=content)
    await api.services.database.write(add_quarantined, PUSHED, clock.now())
    status, out = await retry(*range(1, 52))
    assert (status, {one["outcome"] for one in json.loads(out)}) == (0, {"retried"})
    assert len(json.loads(out)) == 51
    status, words = await retry(52, 53, 54)
    assert status == 2
    reason, missing, summary = words.splitlines()
    assert reason.startswith("53: The record still cannot be parsed: ")
    assert (missing, summary) == ("54: not found", "retried 1 of 3 records")
