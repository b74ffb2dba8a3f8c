"""While the database is away callers are told to come back, and once it is back all goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from sqlalchemy import URL, make_url

from api_server import PUSH_TOKEN, PUSHED, problem
from conftest import migrate
from oauth_answers import oauth_error
from postgres import Postgres


@pytest.fixture
def server() -> Iterator[Postgres]:
    with TemporaryDirectory(prefix="tocsin-postgres-") as folder, Postgres(Path(folder)) as server:
        yield server


@pytest.fixture
def migrated_url(server: Postgres) -> URL:
    url = make_url(server.create("outage"))
    migrate(url)
    return url


async def test_an_outage_of_the_database_is_503_until_it_is_over(api, server):
    headers = await api.reader()
    assert (await api.client.get("/api/v1/incidents", headers=headers)).status == 200
    await asyncio.to_thread(server.stop)
    response = await api.client.get("/api/v1/incidents", headers=headers)
    document = await problem(response, 503)
    assert int(response.headers["Retry-After"]) > 0
    assert str(server.port) not in str(document)
    await asyncio.to_thread(server.start)
    assert (await api.client.get("/api/v1/incidents", headers=headers)).status == 200


async def test_the_token_endpoint_says_so_in_its_own_form(api, server):
    form = {"grant_type": "client_credentials", **await api.client_credentials()}
    await asyncio.to_thread(server.stop)
    response = await api.client.post("/oauth/token", data=form)
    assert await oauth_error(response, 503, "temporarily_unavailable")
    assert int(response.headers["Retry-After"]) > 0
    await asyncio.to_thread(server.start)
    assert (await api.client.post("/oauth/token", data=form)).status == 200


async def test_what_is_pushed_meanwhile_is_to_be_sent_again(api, server):
    headers = {"Authorization": f"Bearer {PUSH_TOKEN}"}
    send = partial(api.client.post, f"/api/push/{PUSHED}", json={"external_id": "1"})
    await asyncio.to_thread(server.stop)
    response = await send(headers=headers)
    await problem(response, 503)
    assert int(response.headers["Retry-After"]) > 0
    await asyncio.to_thread(server.start)
    assert (await (await send(headers=headers)).json())["new"] == 1
