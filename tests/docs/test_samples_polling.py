"""The samples of the page do what the page says, against a running API."""

from __future__ import annotations

import asyncio
import json
import os
import re
from datetime import timedelta
from pathlib import Path

import pytest

from api_server import api
from incident_rows import add_incidents, change_incident

__all__ = ["api"]

PAGE = (Path(__file__).parents[2] / "docs/soar/polling.md").read_text(encoding="utf-8")
pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


def samples(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def url_of(api) -> str:
    return str(api.client.make_url("")).rstrip("/")


async def curl(api, command: str, **variables: str) -> list[int]:
    key = (await api.reader())["X-API-Key"]
    environment = os.environ | {"TOCSIN_URL": url_of(api), "TOCSIN_API_KEY": key} | variables
    process = await asyncio.create_subprocess_shell(
        command, env=environment, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    return [incident["number"] for incident in json.loads(output)["incidents"]]


async def test_the_first_command_asks_for_what_changed_lately(api, clock):
    write = api.services.database.write
    await write(add_incidents, now=clock.now() - timedelta(hours=1))
    await write(add_incidents, now=clock.now())
    await write(add_incidents, now=clock.now(), severity="Low")
    assert await curl(api, samples("sh")[0]) == [2]


async def test_the_second_command_goes_on_from_a_cursor(api):
    await api.services.database.write(add_incidents, 2)
    assert await curl(api, samples("sh")[1], RESUME_CURSOR="") == [1, 2]


async def test_the_program_brings_every_change_once(api, clock, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace: dict = {"__name__": "sample"}
    [sample] = samples("python")
    exec(sample, namespace)
    key = (await api.reader())["X-API-Key"]
    write = api.services.database.write

    async def poll() -> list[int]:
        seen = []
        handle = lambda incident: seen.append(incident["number"])  # noqa: E731
        await asyncio.to_thread(namespace["poll"], url_of(api), key, handle)
        return seen

    await write(add_incidents, 450)
    assert await poll() == list(range(1, 451))
    assert await poll() == []
    await write(change_incident, 7, now=clock.now())
    await write(add_incidents, 1)
    assert await poll() == [7, 451]
