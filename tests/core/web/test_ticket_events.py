"""Webhooks of ticket products are authenticated, and reveal and change nothing else."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from dataclasses import replace
from datetime import timedelta
from io import BytesIO

import pytest
from sqlalchemy import insert, select, update

from api_server import CONFIGURATION, open_api
from incident_rows import NOW
from remote_object_rows import BOARD, add_closed_tickets
from tocsin.store.tables import destinations, remote_objects
from tocsin.web.push_bodies import WEBHOOK_LIMIT
from tocsin.web.rate_limits import WEBHOOK_QUOTA
from tocsin_plugins.ticketing import Ticketing

on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)

SECRET = "the-secret-of-the-webhook"
GITHUB = {
    "tracker": "github",
    "url": "https://api.github.com",
    "secret": "a token",
    "project": "acme/soc",
    "status_interval": "5m",
}
HOOK = {"action": "closed", "issue": {"number": 17}, "repository": {"full_name": "acme/soc"}}
CHANNELS = replace(CONFIGURATION, channels=CONFIGURATION.channels | {"ticketing": Ticketing})


def add_destination(connection, name="soc", **settings):
    row = {"name": name, "managed_by": "api", "plugin": "ticketing", "settings": GITHUB | settings}
    connection.execute(insert(destinations), BOARD | row)


def add_tickets(connection):
    """Add two incidents, and a ticket for each that is due in the distant future."""
    add_closed_tickets(connection)
    settings = GITHUB | {"webhook_secret": SECRET}
    changed = {"plugin": "ticketing", "managed_by": "api", "settings": settings}
    connection.execute(update(destinations).values(changed))
    first = remote_objects.c.remote_id == "SEC-1"
    connection.execute(update(remote_objects).where(first).values(remote_id="17"))
    times = {"status_read_at": NOW - timedelta(days=1), "status_due_at": NOW + timedelta(days=1)}
    connection.execute(update(remote_objects).values(times))
    add_destination(connection, "quiet")


@pytest.fixture
async def api(database, clock):
    await database.write(add_tickets)
    async with open_api(database, clock, CHANNELS) as api:
        yield api


async def send(api, content=HOOK, *, name="soc", secret=SECRET, **headers):
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    signature = f"sha256={hmac.digest(secret.encode(), body, hashlib.sha256).hex()}"
    sent = {"X-Hub-Signature-256": signature, "Content-Type": "application/json"} | headers
    return await api.client.post(f"/api/ticket-events/{name}", data=BytesIO(body), headers=sent)


async def list_due(api) -> list[str]:
    due = select(remote_objects.c.remote_id).where(
        remote_objects.c.status_due_at <= api.services.clock.now()
    )
    return await api.services.database.read(lambda c: list(c.scalars(due)))


def compare(response, document) -> tuple:
    """Return what a client sees, except for its own path and the request's ID."""
    own = {"Date", "X-Request-ID", "Content-Length", "instance"}
    headers = {name: value for name, value in response.headers.items() if name not in own}
    return response.status, headers, {n: v for n, v in document.items() if n not in own}


async def test_the_ticket_of_an_authentic_webhook_is_due(api):
    assert await list_due(api) == []
    response = await send(api)
    assert (response.status, await response.json()) == (202, {"status": "accepted"})
    assert {"RateLimit", "RateLimit-Policy"} <= set(response.headers)
    assert await list_due(api) == ["17"]


@on_sqlite
async def test_a_webhook_can_contain_a_long_ticket(api):
    issue = {"number": 17, "body": "x" * 1_000_000}
    assert (await send(api, HOOK | {"issue": issue})).status == 202
    assert await list_due(api) == ["17"]
    assert api.services.push_bodies.under_way == 0


@on_sqlite
async def test_known_and_unknown_tickets_get_the_same_response(api):
    known = await send(api)
    unknown = await send(api, HOOK | {"issue": {"number": 99}})
    assert (known.status, await known.read()) == (unknown.status, await unknown.read())


@on_sqlite
async def test_an_unknown_destination_looks_like_a_wrong_signature(api):
    wrong = await send(api, secret="another-secret-altogether")
    assert wrong.status == 401
    assert wrong.headers["WWW-Authenticate"]
    expected = compare(wrong, await wrong.json())
    for name in ("nobody", "quiet", "a%20b"):
        response = await send(api, name=name)
        assert compare(response, await response.json()) == expected, name
    assert await list_due(api) == []


@on_sqlite
@pytest.mark.parametrize(
    ("content", "headers", "status"),
    [
        (b"x" * (WEBHOOK_LIMIT + 1), {}, 413),
        (HOOK, {"Content-Type": "application/x-www-form-urlencoded"}, 415),
        (b"[" * 60_000, {}, 202),
        (b"\xff\x00", {}, 202),
        (HOOK, {"X-Hub-Signature-256": ""}, 401),
        (HOOK, {"X-Hub-Signature-256": "sha256=\xff"}, 401),
    ],
)
async def test_other_requests_change_nothing(api, content, headers, status):
    response = await send(api, content, **headers)
    assert response.status == status
    assert await list_due(api) == []


@on_sqlite
async def test_failures_of_an_address_are_limited_and_accepted_senders_are_not(database, clock):
    await database.write(add_tickets)
    async with open_api(database, clock, CHANNELS, auth_failure_limit=3) as api:
        assert (await send(api)).status == 202
        statuses = []
        for _ in range(4):
            guess = asyncio.create_task(send(api, secret="a-guess-of-the-secret"))
            while not guess.done():
                await asyncio.sleep(0.01)
                clock.advance(seconds=0 if guess.done() else 1) if statuses[2:] else None
            statuses.append((await guess).status)
        assert statuses == [401, 401, 401, 429]
        assert (await send(api)).status == 202


@on_sqlite
async def test_a_changed_secret_applies_at_once(api):
    assert (await send(api)).status == 202
    changed = {"settings": GITHUB | {"webhook_secret": "a-new-secret-of-the-hook"}, "revision": 2}
    soc = destinations.c.name == "soc"
    await api.services.database.write(
        lambda c: c.execute(update(destinations).where(soc).values(changed))
    )
    assert (await send(api)).status == 401
    assert (await send(api, secret="a-new-secret-of-the-hook")).status == 202


@on_sqlite
async def test_webhooks_to_one_destination_are_limited(api):
    for _ in range(WEBHOOK_QUOTA.burst):
        api.services.rate_limits.count_webhook("soc")
    response = await send(api)
    assert response.status == 429
    assert response.headers["Retry-After"]
    assert await list_due(api) == []
