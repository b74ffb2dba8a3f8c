"""How much each caller may ask for, and how long whoever fails to authenticate waits."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from ipaddress import ip_network
from types import SimpleNamespace

import pytest
from aiohttp.test_utils import TestClient, TestServer
from multidict import CIMultiDict

from api_server import (
    ENCRYPTION_KEY,
    Api,
    NodeStatus,
    destination_parts,
    make_enriching,
    make_inbox,
    open_api,
    problem,
)
from oauth_answers import GRANT, TOKEN, oauth_error
from tocsin.credentials import (
    Scope,
    Vault,
    generate_client_id,
    generate_client_secret,
    generate_key,
    generate_value,
    parse_key,
)
from tocsin.limits import Quota
from tocsin.metrics import Metrics
from tocsin.settings import Settings
from tocsin.store import open_database
from tocsin.web import client_addresses, make_app, open_api_runtime, rate_limits
from tocsin.web.problems import ProblemError
from tocsin.web.rate_limits import ApiRateLimits

INCIDENTS = "/api/v1/incidents"
KEYS = "/api/admin/api-keys"
SECRETS_TRIED = rate_limits.SECRET_QUOTA.burst

on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
on_postgresql = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)


async def get(api, headers, path=INCIDENTS):
    return await api.client.get(path, headers=headers)


async def statuses(api, headers, times: int) -> list[int]:
    return [(await get(api, headers)).status for _ in range(times)]


def unknown_key() -> dict[str, str]:
    return {"X-API-Key": generate_key()[1]}


def wrong(key: str) -> dict[str, str]:
    """Return headers with the right identifier and a wrong secret."""
    value = parse_key(key)
    return {"X-API-Key": generate_value(value.prefix, value.identifier)[1]}


def unknown_client(client_id: str = "") -> dict[str, str]:
    secret = generate_client_secret()
    return {**GRANT, "client_id": client_id or generate_client_id(), "client_secret": secret}


async def retry_after(response) -> int:
    """Return after how many seconds a refused request may be sent again."""
    document = await problem(response, 429)
    assert document["type"] == "/problems/too-many-requests"
    text = response.headers["Retry-After"]
    assert re.fullmatch("[1-9][0-9]*", text)
    return int(text)


# Requests of each credential


@on_sqlite
async def test_every_answer_to_an_authenticated_request_tells_where_the_caller_stands(
    database, clock
):
    async with open_api(database, clock, rate_limit=60, rate_burst=10) as api:
        headers = await api.reader()
        asked = {
            INCIDENTS: 200,
            f"{INCIDENTS}/1": 404,
            f"{INCIDENTS}?limit=0": 422,
            KEYS: 403,
        }
        for taken, (path, status) in enumerate(asked.items(), 1):
            response = await get(api, headers, path)
            assert response.status == status
            assert response.headers["RateLimit-Policy"] == '"credential";q=60;w=60'
            assert response.headers["RateLimit"] == f'"credential";r={10 - taken};t={taken}'
        held = {"If-None-Match": "*"}
        response = await get(api, headers | held)
        assert (response.status, response.headers["RateLimit"]) == (304, '"credential";r=5;t=5')
        for path in ("/healthz", "/nothing"):
            assert "RateLimit" not in (await get(api, headers, path)).headers
        assert "RateLimit" not in (await get(api, unknown_key())).headers


@on_sqlite
@pytest.mark.parametrize("rate_limit", [7, 60, 600])
async def test_after_retry_after_a_request_is_granted(database, clock, rate_limit):
    async with open_api(database, clock, rate_limit=rate_limit, rate_burst=2) as api:
        headers = await api.reader()
        assert await statuses(api, headers, 3) == [200, 200, 429]
        response = await get(api, headers)
        seconds = await retry_after(response)
        assert response.headers["RateLimit-Policy"] == f'"credential";q={rate_limit};w=60'
        assert response.headers["RateLimit"] == f'"credential";r=0;t={seconds}'
        clock.advance(seconds=seconds)
        assert (await get(api, headers)).status == 200


@on_sqlite
async def test_one_credential_does_not_use_up_what_another_has(database, clock):
    async with open_api(database, clock, rate_limit=1, rate_burst=2) as api:
        token = {"Authorization": f"Bearer {await api.access_token(Scope.INCIDENTS_READ)}"}
        for headers in (await api.reader(), await api.reader(), token):
            assert (await statuses(api, headers, 3))[-1] == 429
        assert (await get(api, await api.admin(), KEYS)).status == 200


@on_sqlite
async def test_a_key_and_its_rotation_share_one_limit(database, clock):
    async with open_api(database, clock, rate_limit=1, rate_burst=3) as api:
        old = await api.reader()
        path = f"{KEYS}/{parse_key(old['X-API-Key']).identifier}/rotate"
        rotated = await api.client.post(path, json={}, headers=await api.admin())
        new = {"X-API-Key": (await rotated.json())["api_key"]}
        assert await statuses(api, old, 2) + await statuses(api, new, 2) == [200, 200, 200, 429]


@on_sqlite
async def test_a_client_and_all_its_tokens_share_one_limit(database, clock):
    async with open_api(database, clock, rate_limit=1, rate_burst=4) as api:
        form = GRANT | await api.client_credentials(Scope.INCIDENTS_READ)
        answers = [await api.client.post(TOKEN, data=form) for _ in range(2)]
        assert answers[-1].headers["RateLimit"] == '"credential";r=2;t=120'
        tokens = [(await answer.json())["access_token"] for answer in answers]
        used = [await get(api, {"Authorization": f"Bearer {token}"}) for token in tokens]
        assert [answer.status for answer in used] == [200, 200]
        response = await api.client.post(TOKEN, data=form)
        await oauth_error(response, 429, "temporarily_unavailable")
        assert response.headers["Retry-After"] == "60"
        assert response.headers["RateLimit"] == '"credential";r=0;t=60'


# Failures of each address


@on_sqlite
async def test_whoever_sends_no_credential_guesses_none(database, clock):
    async with open_api(database, clock, auth_failure_limit=1) as api:
        for _ in range(3):
            await problem(await get(api, {}), 401)
        assert (await get(api, await api.reader())).status == 200


@on_sqlite
async def test_failures_of_every_kind_count_alike(database, clock):
    async with open_api(database, clock, auth_failure_limit=6) as api:
        key = await api.key(Scope.INCIDENTS_READ)
        kinds = (
            {"X-API-Key": "malformed"},
            {"Authorization": "Basic YTpi"},
            {"Authorization": "Bearer a.b.c"},
            unknown_key(),
            wrong(key),
        )
        for headers in kinds:
            await problem(await get(api, headers), 401)
        response = await api.client.post(TOKEN, data=unknown_client())
        await oauth_error(response, 401, "invalid_client")
        for headers in kinds:
            seconds = await retry_after(await get(api, headers))
        clock.advance(seconds=seconds)
        await problem(await get(api, unknown_key()), 401)
        await problem(await get(api, unknown_key()), 429)


@on_sqlite
async def test_the_token_endpoint_says_so_in_its_own_form(database, clock):
    async with open_api(database, clock, auth_failure_limit=2) as api:
        client = GRANT | await api.client_credentials(Scope.INCIDENTS_READ)
        for _ in range(2):
            response = await api.client.post(TOKEN, data=unknown_client())
            await oauth_error(response, 401, "invalid_client")
        for form in (GRANT, unknown_client(), client):
            response = await api.client.post(TOKEN, data=form)
            words = await oauth_error(response, 429, "temporarily_unavailable")
            assert words.startswith("Too many failed authentications from this address")
            seconds = int(response.headers["Retry-After"])
        assert api.services.hasher.runs == 0
        clock.advance(seconds=seconds)
        assert (await api.client.post(TOKEN, data=client)).status == 200


@on_sqlite
async def test_the_answer_to_one_failure_too_many_is_held_back(database, clock):
    async with open_api(database, clock, auth_failure_limit=1) as api:
        for headers, held_back in (
            (unknown_key(), 0),
            (unknown_key(), 1),
            ({"X-API-Key": "malformed"}, 1),
        ):
            before = clock.now()
            await get(api, headers)
            assert (clock.now() - before).total_seconds() == held_back


@on_sqlite
async def test_who_was_let_in_before_is_not_limited_by_the_failures_of_others(database, clock):
    async with open_api(database, clock, auth_failure_limit=2) as api:
        known, fresh = await api.reader(), await api.reader()
        token = {"Authorization": f"Bearer {await api.access_token(Scope.INCIDENTS_READ)}"}
        client = GRANT | await api.client_credentials(Scope.INCIDENTS_READ)
        for headers in (known, token):
            assert (await get(api, headers)).status == 200
        assert (await api.client.post(TOKEN, data=client)).status == 200
        for _ in range(5):
            await get(api, unknown_key())
        for headers in (known, token):
            assert await statuses(api, headers, 10) == [200] * 10
        assert (await api.client.post(TOKEN, data=client)).status == 200
        seconds = await retry_after(await get(api, fresh))
        clock.advance(seconds=seconds)
        assert (await get(api, fresh)).status == 200


async def test_only_so_many_answers_are_held_back_at_once(clock):
    class Standing:
        """A clock on which sleepers stay asleep."""

        asleep = 0
        now = clock.now

        async def sleep(self, _duration) -> None:
            self.asleep += 1
            await asyncio.Event().wait()

    standing = Standing()
    limits = ApiRateLimits(Quota(1, 1), Quota(1, 1), standing)
    await limits.count_failure("192.0.2.1")

    async def fail() -> int:
        with pytest.raises(ProblemError) as caught:
            await limits.count_failure("192.0.2.1")
        return caught.value.status

    held = [asyncio.create_task(fail()) for _ in range(rate_limits.MAX_DELAYED_RESPONSES)]
    await asyncio.sleep(0)
    assert standing.asleep == rate_limits.MAX_DELAYED_RESPONSES
    assert await fail() == 429
    for task in held:
        task.cancel()
    await asyncio.gather(*held, return_exceptions=True)
    again = asyncio.create_task(fail())
    await asyncio.sleep(0)
    assert standing.asleep == rate_limits.MAX_DELAYED_RESPONSES + 1
    again.cancel()


@on_sqlite
async def test_a_client_with_a_replaced_key_does_not_lock_out_the_new_value(database, clock):
    async with open_api(database, clock, auth_failure_limit=2) as api:
        stale = await api.reader()
        path = f"{KEYS}/{parse_key(stale['X-API-Key']).identifier}/rotate"
        replaced = {"grace_period_days": 0}
        rotated = await api.client.post(path, json=replaced, headers=await api.admin())
        found = await statuses(api, stale, SECRETS_TRIED + 10)
        assert (found[0], found[-1]) == (401, 429)
        assert api.services.hasher.runs == 2  # the new value's hash, and one mismatch
        new = {"X-API-Key": (await rotated.json())["api_key"]}
        assert (await get(api, new)).status == 200


@on_sqlite
async def test_a_client_with_a_replaced_secret_does_not_lock_out_the_new_one(database, clock):
    async with open_api(database, clock, auth_failure_limit=2) as api:
        stale = GRANT | await api.client_credentials(Scope.INCIDENTS_READ)
        path = f"/api/admin/api-clients/{stale['client_id']}/regenerate-secret"
        regenerated = await api.client.post(path, headers=await api.admin())
        for _ in range(SECRETS_TRIED + 10):
            refused = await api.client.post(TOKEN, data=stale)
        await oauth_error(refused, 429, "temporarily_unavailable")
        new = stale | {"client_secret": (await regenerated.json())["client_secret"]}
        assert (await api.client.post(TOKEN, data=new)).status == 200


@on_sqlite
async def test_a_repeated_credential_is_limited_by_itself(database, clock):
    async with open_api(database, clock, auth_failure_limit=5) as api:
        stale = unknown_key()
        assert await statuses(api, stale, 8) == [401] * 6 + [429] * 2
        seconds = await retry_after(await get(api, stale))
        clock.advance(seconds=seconds)
        assert await statuses(api, stale, 2) == [401, 429]
        assert await statuses(api, unknown_key(), 1) == [401]


# What Argon2 costs


@on_sqlite
async def test_wrong_secrets_of_one_key_at_once_cost_few_argon2(api):
    key = await api.key(Scope.INCIDENTS_READ)
    answers = await asyncio.gather(*(get(api, wrong(key)) for _ in range(100)))
    found = [answer.status for answer in answers]
    assert (found.count(401), found.count(429)) == (SECRETS_TRIED, 100 - SECRETS_TRIED)
    assert api.services.hasher.runs == SECRETS_TRIED


@on_sqlite
async def test_wrong_secrets_of_one_client_at_once_cost_few_argon2(api):
    client = await api.client_credentials(Scope.INCIDENTS_READ)
    forms = [unknown_client(client["client_id"]) for _ in range(50)]
    answers = await asyncio.gather(*(api.client.post(TOKEN, data=form) for form in forms))
    assert {answer.status for answer in answers} == {401, 429}
    assert api.services.hasher.runs == SECRETS_TRIED


@on_sqlite
async def test_one_wrong_secret_many_times_at_once_costs_few_argon2(api):
    headers = wrong(await api.key(Scope.INCIDENTS_READ))
    await asyncio.gather(*(get(api, headers) for _ in range(100)))
    assert api.services.hasher.runs <= SECRETS_TRIED


@on_sqlite
async def test_who_guesses_at_a_key_stops_nobody_who_holds_it(api):
    holder = await api.reader()
    assert (await get(api, holder)).status == 200
    for _ in range(SECRETS_TRIED + 5):
        await get(api, wrong(holder["X-API-Key"]))
    assert (await get(api, holder)).status == 200


@on_sqlite
async def test_tries_come_back_with_time(api, clock):
    key = await api.key(Scope.INCIDENTS_READ)
    for _ in range(SECRETS_TRIED):
        await problem(await get(api, wrong(key)), 401)
    seconds = await retry_after(await get(api, {"X-API-Key": key}))
    clock.advance(seconds=seconds)
    assert (await get(api, {"X-API-Key": key})).status == 200


@on_sqlite
async def test_the_right_secret_takes_no_try(api):
    headers = await api.reader()
    hasher = api.services.hasher
    for runs in range(1, SECRETS_TRIED + 5):
        assert (await get(api, headers)).status == 200
        assert hasher.runs == runs
        hasher._cache._entries.clear()


@on_sqlite
async def test_an_unknown_identifier_runs_out_of_tries_like_a_known_one(api):
    known, (_, unknown) = await api.key(Scope.INCIDENTS_READ), generate_key()
    client = await api.client_credentials(Scope.INCIDENTS_READ)
    for one, other in ((known, unknown), (client["client_id"], generate_client_id())):
        assert await guess(api, one) == await guess(api, other)


async def guess(api, identifier: str) -> list[tuple[int, str | None]]:
    """Return how guesses at the secret of a key or a client are answered."""
    answers = []
    for _ in range(SECRETS_TRIED + 5):
        if identifier.startswith("cl_"):
            answer = await api.client.post(TOKEN, data=unknown_client(identifier))
        else:
            answer = await get(api, wrong(identifier))
        answers.append((answer.status, answer.headers.get("Retry-After")))
    return answers


@on_sqlite
async def test_where_too_many_secrets_wait_a_new_one_is_turned_away_and_loses_no_try(api):
    known, fresh = await api.reader(), await api.reader()
    client = GRANT | await api.client_credentials(Scope.INCIDENTS_READ)
    assert (await get(api, known)).status == 200
    hasher = api.services.hasher
    room, hasher._waiting = hasher._waiting, 0
    for _ in range(SECRETS_TRIED + 1):
        assert await retry_after(await get(api, fresh)) == 1
        response = await api.client.post(TOKEN, data=client)
        await oauth_error(response, 429, "temporarily_unavailable")
        assert response.headers["Retry-After"] == "1"
    assert (await get(api, known)).status == 200
    hasher._waiting = room
    assert (await get(api, fresh)).status == 200
    assert (await api.client.post(TOKEN, data=client)).status == 200


# Where a request comes from

ONE, OTHER, PROXY = "203.0.113.1", "203.0.113.2", "198.51.100.7"
SAME = {
    "as it is": ([ONE], [ONE]),
    "with forged entries": ([ONE], [OTHER, ONE]),
    "with forged words": ([ONE], ["unknown, <script>", ONE]),
    "through a proxy": ([ONE], [ONE, PROXY]),
    "through two proxies": ([ONE], [OTHER, ONE, PROXY, "127.0.0.9"]),
    "in two fields": ([f"{OTHER}, {ONE}"], [OTHER, ONE]),
    "mapped into IPv6": ([ONE], [f"::ffff:{ONE}"]),
    "mapped, in hexadecimal": ([ONE], ["::FFFF:cb00:7101"]),
    "through a mapped proxy": ([ONE], [ONE, f"::ffff:{PROXY}"]),
    "one IPv6 site": (["2001:db8:0:1::1"], ["2001:db8:0:1:ffff:ffff:ffff:ffff"]),
    "written otherwise": (["2001:db8::1"], ["2001:0DB8:0::0001"]),
    "with ports": ([f"{ONE}:1"], [f"{ONE}:2"]),
    "with a zone": (["fe80::1%eth0"], ["[fe80::1%eth1]:80"]),
    "words alone": (["unknown"], ["<script>"]),
    "words behind a proxy": ([PROXY], [ONE, "unknown", PROXY]),
}
DIFFERENT = {
    "another address": ([ONE], [OTHER]),
    "the address of a forged entry": ([ONE], [ONE, OTHER]),
    "another IPv6 site": (["2001:db8:0:1::1"], ["2001:db8:0:2::1"]),
    "another mapped address": ([f"::ffff:{ONE}"], [f"::ffff:{OTHER}"]),
    "behind an entry that is none": ([ONE], [ONE, "unknown"]),
}


def forwarded(hops: list[str]) -> list[tuple[str, str]]:
    return [*unknown_key().items(), *(("X-Forwarded-For", hop) for hop in hops)]


async def second_answer(database, clock, first: list[str], second: list[str], **settings) -> int:
    """Return how a failure is answered after one whose proxies wrote `first`."""
    async with open_api(database, clock, auth_failure_limit=1, **settings) as api:
        await problem(await get(api, forwarded(first)), 401)
        return (await get(api, forwarded(second))).status


@on_sqlite
@pytest.mark.parametrize(("first", "second"), SAME.values(), ids=SAME)
async def test_one_source_is_one_however_it_is_written(database, clock, first, second):
    trusted = f"127.0.0.0/8, {PROXY}"
    status = await second_answer(database, clock, first, second, trusted_proxies=trusted)
    assert status == 429


@on_sqlite
@pytest.mark.parametrize(("first", "second"), DIFFERENT.values(), ids=DIFFERENT)
async def test_one_source_is_not_limited_by_another(database, clock, first, second):
    trusted = f"127.0.0.0/8, {PROXY}"
    status = await second_answer(database, clock, first, second, trusted_proxies=trusted)
    assert status == 401


@on_sqlite
@pytest.mark.parametrize("trusted", [(), "198.51.100.0/24"], ids=["nobody", "others"])
async def test_what_others_than_trusted_proxies_write_is_ignored(database, clock, trusted):
    assert await second_answer(database, clock, [ONE], [OTHER], trusted_proxies=trusted) == 429


def test_what_a_client_writes_is_not_even_parsed():
    """Otherwise, 8 KB of each request would stay in a cache."""
    parse = client_addresses._parse_address
    parse.cache_clear()
    addresses = client_addresses.ClientAddresses([ip_network(PROXY)])
    for number in range(10):
        headers = CIMultiDict({"X-Forwarded-For": f"{ONE}, {number}{'x' * 8_000}"})
        assert addresses.find(SimpleNamespace(remote=OTHER, headers=headers)) == OTHER
    assert parse.cache_info().currsize == 1


# Several nodes


@asynccontextmanager
async def open_nodes(database_url, clock, **settings: int) -> AsyncIterator[list[Api]]:
    """Return two nodes of one database that share their limits."""
    async with AsyncExitStack() as stack:
        yield [await open_node(stack, database_url, clock, Settings(**settings)) for _ in range(2)]


async def open_node(stack: AsyncExitStack, database_url, clock, settings: Settings) -> Api:
    database = open_database(database_url)
    stack.push_async_callback(database.close)
    vault = Vault(ENCRYPTION_KEY, source="test")
    parts = destination_parts(settings, database, vault, clock)
    inbox = await make_inbox(database, clock)
    door = await stack.enter_async_context(
        open_api_runtime(
            settings,
            database,
            vault,
            clock,
            **parts,
            inbox=inbox,
            enricher=make_enriching(database, clock),
            metrics=Metrics(clock),
            is_shared=True,
            node=NodeStatus({}),
        )
    )
    node = Api(door, {})
    server = TestServer(make_app(door.services))
    node.client = await stack.enter_async_context(TestClient(server))
    return node


async def exchange(*nodes) -> None:
    for node in nodes:
        await node.door.sharing.exchange()


@on_postgresql
async def test_nodes_count_what_others_let_through(database, database_url, clock):
    async with open_nodes(database_url, clock, rate_limit=1, rate_burst=4) as (one, other):
        headers = await one.reader()
        await exchange(one, other)
        assert await statuses(one, headers, 3) == [200, 200, 200]
        await exchange(one, other)
        assert await statuses(other, headers, 2) == [200, 429]


@on_postgresql
async def test_nodes_count_failures_elsewhere(database, database_url, clock):
    async with open_nodes(database_url, clock, auth_failure_limit=3) as (one, other):
        known = await other.reader()
        assert (await get(other, known)).status == 200
        await exchange(one, other)
        assert [await statuses(one, unknown_key(), 1) for _ in range(3)] == [[401]] * 3
        await exchange(one, other)
        await problem(await get(other, unknown_key()), 429)
        assert (await get(other, known)).status == 200
