"""Who is told the metrics, and who is not."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from api_server import open_api, problem
from tocsin.web.client_addresses import ClientAddresses

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)

TOKEN = "a-token-of-the-metrics"
PROMETHEUS = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "application/openmetrics-text;version=0.0.1;q=0.5,"
    "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


class Elsewhere(ClientAddresses):
    def __init__(self, address: str) -> None:
        self._address = address

    def find(self, _request) -> str:
        return self._address


@pytest.fixture
async def guarded(database, clock):
    async with open_api(database, clock, metrics_token=TOKEN, auth_failure_limit=3) as api:
        yield api


@pytest.mark.parametrize("accept", [PROMETHEUS, "*/*"])
async def test_prometheus_on_this_machine_is_answered(api, accept):
    response = await api.client.get("/metrics", headers={"Accept": accept})
    assert (response.status, response.content_type) == (200, "text/plain")
    assert list(text_string_to_metric_families(await response.text()))


@pytest.mark.parametrize("address", ["198.51.100.7", "10.0.0.1", "2001:db8::1", "unknown"])
async def test_without_a_token_nobody_else_is(api, address):
    object.__setattr__(api.services, "addresses", Elsewhere(address))
    document = await problem(await api.client.get("/metrics"), 403)
    assert "TOCSIN_METRICS_TOKEN" in document["detail"]


@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.9.1", "::1"])
async def test_every_loopback_address_is_this_machine(api, address):
    object.__setattr__(api.services, "addresses", Elsewhere(address))
    assert (await api.client.get("/metrics")).status == 200


@pytest.mark.parametrize("name", ["X-Forwarded-For", "Forwarded", "Via", "X-Real-IP"])
@pytest.mark.parametrize("trusted", ["", "127.0.0.1/32"])
async def test_a_proxy_on_this_machine_does_not_speak_for_it(database, clock, name, trusted):
    settings = {"trusted_proxies": trusted} if trusted else {}
    async with open_api(database, clock, **settings) as api:
        await problem(await api.client.get("/metrics", headers={name: "127.0.0.1"}), 403)


async def test_an_admin_token_is_no_metrics_token(api, guarded):
    object.__setattr__(api.services, "addresses", Elsewhere("198.51.100.7"))
    for refused, status in ((api, 403), (guarded, 401)):
        headers = await refused.admin()
        await problem(await refused.client.get("/metrics", headers=headers), status)


@pytest.mark.parametrize("address", ["127.0.0.1", "198.51.100.7"])
async def test_with_a_token_whoever_sends_it_is_answered(guarded, address):
    object.__setattr__(guarded.services, "addresses", Elsewhere(address))
    response = await guarded.client.get("/metrics", headers=bearer(TOKEN))
    assert response.status == 200
    lower = {"Authorization": f"bearer {TOKEN}", "X-Forwarded-For": "198.51.100.7"}
    assert (await guarded.client.get("/metrics", headers=lower)).status == 200


@pytest.mark.parametrize(
    "headers",
    [{}, bearer("wrong"), bearer(TOKEN + "x"), bearer(""), {"Authorization": f"Basic {TOKEN}"}],
)
async def test_with_a_token_nobody_else_is_answered(guarded, headers):
    response = await guarded.client.get("/metrics", headers=headers)
    document = await problem(response, 401)
    assert response.headers["WWW-Authenticate"] == 'Bearer realm="tocsin"'
    assert TOKEN not in str(document)


async def test_a_token_in_the_query_is_not_read(guarded):
    await problem(await guarded.client.get(f"/metrics?token={TOKEN}"), 422)


async def test_guesses_run_out_but_not_for_whoever_knows(guarded):
    for number in range(3):
        headers = bearer(f"guess-{number}")
        await problem(await guarded.client.get("/metrics", headers=headers), 401)
    await problem(await guarded.client.get("/metrics", headers=bearer("guess")), 429)
    assert (await guarded.client.get("/metrics", headers=bearer(TOKEN))).status == 200
