"""The samples of the page do what the page says, against a running API."""

from __future__ import annotations

import asyncio
import json
import os
import re
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.error import HTTPError

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from api_server import api, open_api
from incident_rows import add_incidents
from tocsin.credentials import Scope

__all__ = ["api"]

PAGE = (Path(__file__).parents[2] / "docs/soar/credentials.md").read_text(encoding="utf-8")
READ = Scope.INCIDENTS_READ
pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


def sample(section: str, language: str) -> str:
    """Return the one sample of a section."""
    text = PAGE.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    [found] = re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return found


@pytest.fixture
def program(clock) -> dict:
    """All samples in Python, as one program that keeps the time of the API."""
    namespace: dict = {"__name__": "sample"}
    for source in re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE):
        exec(source, namespace)
    namespace["monotonic"] = lambda: clock.now().timestamp()
    namespace["slept"] = []

    def sleep(seconds: float) -> None:
        namespace["slept"].append(seconds)
        clock.advance(seconds=seconds)

    namespace["sleep"] = sleep
    return namespace


def url_of(api) -> str:
    return str(api.client.make_url("")).rstrip("/")


async def bash(api, script: str, folder: Path, **variables: str) -> str:
    environment = os.environ | {"TOCSIN_URL": url_of(api)} | variables
    process = await asyncio.create_subprocess_exec(
        "bash", "-c", script, cwd=folder, env=environment, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    assert process.returncode == 0
    return output.decode()


async def key_of(api) -> str:
    return (await api.reader())["X-API-Key"]


async def client_of(api) -> dict[str, str]:
    credentials = await api.client_credentials(READ)
    return {name.upper(): value for name, value in credentials.items()}


async def token_of(api, program):
    client = await client_of(api)
    return program["AccessToken"](url_of(api), client["CLIENT_ID"], client["CLIENT_SECRET"])


async def test_the_command_reads_with_an_api_key(api, tmp_path):
    await api.services.database.write(add_incidents, 2)
    script = sample("With an API key", "bash")
    answer = json.loads(await bash(api, script, tmp_path, TOCSIN_API_KEY=await key_of(api)))
    assert [incident["number"] for incident in answer["incidents"]] == [2, 1]


async def test_the_program_reads_with_an_api_key(api, program):
    await api.services.database.write(add_incidents, 2)
    found = await asyncio.to_thread(program["high_incidents"], url_of(api), await key_of(api))
    assert [incident["number"] for incident in found] == [2, 1]


@pytest.mark.parametrize(("lifetime", "tokens"), [(1800, 1), (60, 2)])
async def test_the_command_obtains_a_token_in_time_and_not_before(
    database, clock, tmp_path, lifetime, tokens
):
    script = sample("With an API client", "bash") + '\necho; echo "$TOKEN"; renew; echo "$TOKEN"'
    async with open_api(database, clock, access_token_seconds=lifetime) as api:
        output = await bash(api, script, tmp_path, **await client_of(api))
    answer, *seen = output.splitlines()
    assert json.loads(answer)["incidents"] == []
    assert len(seen) == 2
    assert len(set(seen)) == tokens


async def test_the_program_obtains_a_token_a_minute_before_the_last_one_ends(api, program, clock):
    token = await token_of(api, program)
    first = await asyncio.to_thread(token.headers)
    found = await asyncio.to_thread(program["get"], f"{url_of(api)}/api/v1/incidents", first)
    assert found["incidents"] == []
    clock.advance(seconds=1739)
    assert await asyncio.to_thread(token.headers) == first
    clock.advance(seconds=1)
    assert await asyncio.to_thread(token.headers) != first


async def test_the_program_obtains_a_token_when_the_last_one_is_to_be_forgotten(api, program):
    token = await token_of(api, program)
    first = await asyncio.to_thread(token.headers)
    token.forget()
    assert await asyncio.to_thread(token.headers) != first


@asynccontextmanager
async def passing_time(clock, slept: list[float]):
    """Serve the clock, for a `sleep` in another process, and yield its definition there."""

    async def sleep(request: web.Request) -> web.Response:
        slept.append(float(request.match_info["seconds"]))
        clock.advance(seconds=slept[-1])
        return web.Response()

    app = web.Application()
    app.router.add_post("/{seconds}", sleep)
    async with TestServer(app) as server:
        yield f'sleep() {{ curl -sS -X POST "{server.make_url("/")}$1"; }}\n'


NARROW = {"rate_limit": 12, "rate_burst": 1}  # one every five seconds


async def test_the_command_waits_as_long_as_it_is_told(database, clock, tmp_path):
    slept: list[float] = []
    script = sample("Rate limits and retries", "bash")
    async with open_api(database, clock, **NARROW) as api, passing_time(clock, slept) as sleep:
        key = await key_of(api)
        await api.client.get("/api/v1/incidents", headers={"X-API-Key": key})
        await bash(api, sleep + script, tmp_path, TOCSIN_API_KEY=key)
    assert json.loads((tmp_path / "incidents.json").read_text())["incidents"] == []
    [waited] = slept
    assert 5 <= waited <= 11


async def test_the_program_waits_as_long_as_it_is_told(database, clock, program):
    async with open_api(database, clock, **NARROW) as api:
        arguments = f"{url_of(api)}/api/v1/incidents", {"X-API-Key": await key_of(api)}
        for _ in range(2):
            answer = await asyncio.to_thread(program["call"], *arguments)
            assert answer["incidents"] == []
    [waited] = program["slept"]
    assert 5 <= waited <= 7.5


async def test_the_program_waits_longer_each_time_for_whom_it_cannot_reach(api, program):
    url = url_of(api)
    await api.client.close()
    with pytest.raises(OSError, match="refused"):
        await asyncio.to_thread(program["call"], url, {})
    assert len(program["slept"]) == 5
    for attempt, waited in enumerate(program["slept"]):
        assert 2**attempt <= waited <= 1.5 * 2**attempt


async def test_the_program_does_not_wait_for_what_stays(api, program):
    with pytest.raises(HTTPError, match="401"):
        await asyncio.to_thread(program["call"], f"{url_of(api)}/api/v1/incidents", {})
    assert program["slept"] == []


async def test_the_command_fetches_only_what_has_changed(api, tmp_path):
    script, key = sample("Conditional requests", "bash"), await key_of(api)

    async def fetch() -> tuple[str, int]:
        status = await bash(api, script, tmp_path, TOCSIN_API_KEY=key)
        incidents = json.loads((tmp_path / "incidents.json").read_text())["incidents"]
        return status.strip(), len(incidents)

    await api.services.database.write(add_incidents)
    assert [await fetch(), await fetch()] == [("200", 1), ("304", 1)]
    await api.services.database.write(add_incidents)
    assert await fetch() == ("200", 2)


async def test_the_program_fetches_only_what_has_changed(api, program):
    arguments = f"{url_of(api)}/api/v1/incidents", await api.reader()
    page, tag = await asyncio.to_thread(program["changed"], *arguments)
    assert page["incidents"] == []
    assert await asyncio.to_thread(program["changed"], *arguments, tag) == (None, tag)
    await api.services.database.write(add_incidents)
    page, new_tag = await asyncio.to_thread(program["changed"], *arguments, tag)
    assert len(page["incidents"]) == 1
    assert new_tag != tag


async def test_the_command_creates_a_key_once(api, tmp_path):
    script = sample("Idempotent creation", "bash")
    again = "\necho\n" + script.partition("\n")[2]
    token = await api.token()
    output = await bash(api, script + again, tmp_path, TOCSIN_ADMIN_TOKEN=token)
    created, refused = map(json.loads, output.splitlines())
    assert refused["type"] == "/problems/secret-shown"
    assert refused["record"] == f"key:{created['key_id']}"


async def test_the_program_creates_a_key_once_and_gets_at_its_value(api, program):
    wanted = {"name": "enrichment", "scopes": ["incidents:read"]}
    arguments = url_of(api), await api.token(), wanted, "once"
    keys = [await asyncio.to_thread(program["create_key"], *arguments) for _ in range(2)]
    assert keys[0] != keys[1]
    assert keys[0][:24] == keys[1][:24]
    statuses = []
    for key in keys:
        response = await api.client.get("/api/v1/incidents", headers={"X-API-Key": key})
        statuses.append(response.status)
    assert statuses == [401, 200]
