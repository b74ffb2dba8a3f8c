"""The service answers under its own names alone, so that no page can rebind another to it."""

from __future__ import annotations

import asyncio

import pytest

from api_server import URL, open_api, problem
from tocsin.credentials import Scope

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)

INCIDENTS = "/api/v1/incidents"
OURS = ("tocsin.example", "TOCSIN.example.:443", "localhost:8080", "127.0.0.1", "127.8.9.1:1")
FOREIGN = ("evil.example", "tocsin.example.evil.example", "192.0.2.7:8080", "[::1", "a b", "")
ODD = (
    "evil.example@tocsin.example",
    "evil.example:80@localhost",
    "localhost@evil.example",
    "tocsin.example/evil.example",
    "tocsin.example?evil.example",
    "tocsin.example#evil.example",
    "tocsin.example\\evil.example",
    "tocsin.example, evil.example",
    "tocsin.example..",
    ".tocsin.example",
    "tocsin.example:evil",
    "tocsin.example:80:80",
    "tocsin%2eexample",
    "127.1",
    "2130706433",
    "0x7f.0.0.1",
    "[::ffff:192.0.2.7]",
    "[::1%25eth0]",
    "::1",
)


async def get(api, path, host, **headers):
    return await api.client.get(path, headers={"Host": host, **headers}, allow_redirects=False)


@pytest.mark.parametrize("host", [*OURS, "[::1]:8080"])
async def test_our_names_are_answered(api, host):
    assert (await get(api, INCIDENTS, host, **await api.reader())).status == 200


@pytest.mark.parametrize("host", FOREIGN)
@pytest.mark.parametrize("path", [INCIDENTS, "/", "/sign-in", "/docs", "/metrics", "/nowhere"])
async def test_other_names_are_refused_whatever_the_path(api, host, path):
    document = await problem(await get(api, path, host, **await api.analyst()), 421)
    assert URL in document["detail"]
    assert host not in document["detail"] or not host


@pytest.mark.parametrize("host", ODD)
async def test_what_only_a_url_parser_takes_for_our_name_is_refused(api, host):
    await problem(await get(api, INCIDENTS, host, **await api.reader()), 421)


async def test_the_name_in_a_request_target_counts_too(api):
    """RFC 9112 section 3.2.2: a whole URL as request target overrides `Host`."""
    key = (await api.reader())["X-API-Key"]
    server = api.client.server
    for target, status in (("localhost", 200), ("[::1]:80", 200), ("evil.example", 421)):
        reader, writer = await asyncio.open_connection(server.host, server.port)
        writer.write(
            f"GET http://{target}{INCIDENTS} HTTP/1.1\r\nHost: localhost\r\n"
            f"X-API-Key: {key}\r\nX-Forwarded-Host: localhost\r\nConnection: close\r\n\r\n".encode()
        )
        assert (await reader.readline()).split()[1] == b"%d" % status, target
        writer.close()


async def test_a_form_under_another_name_changes_nothing(api):
    token = await api.token()
    headers = {"Host": "evil.example", "Origin": "http://evil.example"}
    response = await api.client.post("/sign-in", data={"token": token}, headers=headers)
    assert response.status == 421
    assert "Set-Cookie" not in response.headers


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
async def test_probes_ask_by_any_name(api, path):
    assert (await get(api, path, "192.0.2.7:8080")).status == 200


async def test_a_token_lets_scrapers_ask_by_any_name(database, clock):
    async with open_api(database, clock, metrics_token="a-token-of-prometheus") as api:
        token = {"Authorization": "Bearer a-token-of-prometheus"}
        assert (await get(api, "/metrics", "192.0.2.7:8080", **token)).status == 200


async def test_the_token_endpoint_is_answered_under_its_own_name(database, clock):
    async with open_api(database, clock, auth_url="https://login.example") as api:
        key = {"X-API-Key": await api.key(Scope.INCIDENTS_READ)}
        assert (await get(api, INCIDENTS, "login.example", **key)).status == 200


async def test_refused_names_are_counted(api):
    for _ in range(3):
        await get(api, INCIDENTS, "evil.example")
    text = await (await api.client.get("/metrics")).text()
    assert 'tocsin_requests_refused_total{reason="unknown-host"} 3.0' in text
