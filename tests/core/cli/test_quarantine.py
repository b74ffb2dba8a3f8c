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
from tocsin.cli.quarantine import MAX_RETRIED, RETRIED
from tocsin.errors import OperatorError
from tocsin.web.schemas import quarantine as schemas

pytestmark = pytest.mark.usefixtures("admin_terminal")


@pytest.fixture
def database_url(tmp_path) -> URL:
    """Which database the API stands on does not matter to its callers."""
    return URL.create("sqlite", database=str(tmp_path / "tocsin.db"))


async def retry(*records: int) -> tuple[int, list[dict], str]:
    """Retry records; return the status, what was printed, and why records were refused."""
    arguments = ["quarantine", "retry", *map(str, records), "--json"]
    result = await asyncio.to_thread(CliRunner().invoke, app, arguments)
    error = result.exception
    printed = json.loads(result.stdout or "[]")
    if isinstance(error, OperatorError):
        return error.exit_status, printed, str(error)
    return result.exit_code, printed, ""


async def test_a_push_is_retried_once(api, clock):
    content = b'{"external_id": "case-17", "title": "Odd sign-in"}'
    await api.services.database.write(add_quarantined, PUSHED, clock.now(), content=content)
    status, [counts], _ = await retry(1)
    assert (status, counts["id"], counts["new"], counts["records"]) == (0, 1, 1, [1])
    status, _, words = await retry(1)
    assert (status, words) == (2, "409: The record was already retried.")


async def test_a_push_that_still_does_not_map_is_refused_with_the_reason(api, clock):
    await api.services.database.write(add_quarantined, PUSHED, clock.now())
    status, _, words = await retry(1)
    assert (status, words.startswith("409: The record still cannot be parsed: ")) == (2, True)
    status, _, words = await retry(2)
    assert (status, words.startswith("404: ")) == (2, True)


async def test_several_pushes_are_retried_at_once(api, clock):
    content = b'{"external_id": "case-17", "title": "Odd sign-in"}'
    await api.services.database.write(add_quarantined, PUSHED, clock.now(), 52, content=content)
    await api.services.database.write(add_quarantined, PUSHED, clock.now())
    status, printed, _ = await retry(*range(1, 52))
    assert (status, {one["outcome"] for one in printed}) == (0, {"retried"})
    assert len(printed) == 51
    status, printed, words = await retry(52, 53, 54)
    assert status == 2
    assert [(one["id"], one["outcome"], one["detail"] is None) for one in printed] == [
        (52, "retried", True),
        (53, "refused", False),
        (54, "not-found", True),
    ]
    reason, missing, summary = words.splitlines()
    assert reason.startswith("53: The record still cannot be parsed: ")
    assert (missing, summary) == ("54: not found", "retried 1 of 3 records")


async def test_what_was_retried_before_a_failure_is_printed(api, clock):
    content = b'{"external_id": "case-17", "title": "Odd sign-in"}'
    await api.services.database.write(add_quarantined, PUSHED, clock.now(), 50, content=content)
    status, printed, words = await retry(10**18, *reversed(range(1, 51)))
    assert (status, [one["id"] for one in printed]) == (2, [*range(1, 51)])
    failure, *_, summary = words.splitlines()
    assert (failure[:4], summary) == ("422:", "retried 50 of 51 records")


def test_the_command_and_the_api_have_the_same_limit_and_outcomes():
    assert (MAX_RETRIED, RETRIED) == (schemas.MAX_RETRIED, schemas.RetryOutcome.RETRIED)
