"""Requests with an Idempotency-Key take effect once, whatever the network does to them."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import func, select

from api_callers import (
    CLIENTS,
    GOOD,
    KEYS,
    Admin,
    admitted,
    hashing_held,
    obtain_token,
    until,
)
from api_server import problem
from tocsin.store.tables import idempotency_keys
from tocsin.web.context import AuditedChange, Response
from tocsin.web.endpoints import ENDPOINTS
from tocsin.web.idempotency import (
    AlreadyApplied,
    IdempotentRequest,
    find_stored_response,
    store_response,
)

HEADER = "Idempotency-Key"
IN_FLIGHT = "/problems/idempotency-key-in-flight"
REUSED = "/problems/idempotency-key-reused"
SHOWN = "/problems/secret-shown"
ONCE = {HEADER: "8e03978e-40d5-43dd-bc93-6894a57f9324"}


async def create(admin, headers=ONCE, **body):
    return await admin.send("POST", KEYS, headers=headers, json=GOOD | body)


async def number_of_keys(admin) -> int:
    return (await admin.read(KEYS))["total"]


async def test_a_second_request_names_the_record_since_its_secret_was_shown(admin):
    created = await (await create(admin)).json()
    document = await problem(await create(admin), 409)
    assert document["type"] == SHOWN
    assert document["record"] == f"key:{created['key_id']}"
    assert created["key_id"] in document["detail"]
    assert created["api_key"][25:] not in str(document)
    assert await number_of_keys(admin) == 1
    assert len(await admin.audited()) == 1


async def test_every_endpoint_that_creates_takes_a_key():
    for endpoint in ENDPOINTS:
        if endpoint.method == "POST" and endpoint.shows_secret:
            assert endpoint.idempotent, endpoint.path


async def test_a_client_is_created_once(api, admin):
    first = await admin.ask("POST", CLIENTS, 201, headers=ONCE, json=GOOD)
    document = await problem(await admin.send("POST", CLIENTS, headers=ONCE, json=GOOD), 409)
    assert document["record"] == f"client:{first['client_id']}"
    assert (await admin.read(CLIENTS))["total"] == 1
    await obtain_token(api, first)


async def test_a_key_is_rotated_once(api, admin):
    path = f"{KEYS}/{(await admin.create_key())['key_id']}/rotate"
    rotated = await admin.ask("POST", path, headers=ONCE, json={"grace_period_days": 0})
    response = await admin.send("POST", path, headers=ONCE, json={"grace_period_days": 0})
    assert (await problem(response, 409))["type"] == SHOWN
    assert await admitted(api, rotated["api_key"])


async def test_a_secret_is_regenerated_once(api, admin):
    client = await admin.create_client()
    path = f"{CLIENTS}/{client['client_id']}/regenerate-secret"
    regenerated = await admin.ask("POST", path, headers=ONCE)
    await problem(await admin.send("POST", path, headers=ONCE), 409)
    await obtain_token(api, regenerated)


async def test_another_body_is_another_request(admin):
    await create(admin)
    document = await problem(await create(admin, name="other"), 422)
    assert document["type"] == REUSED
    assert await number_of_keys(admin) == 1


async def test_another_path_is_another_request(admin):
    await create(admin)
    response = await admin.send("POST", CLIENTS, headers=ONCE, json=GOOD)
    assert (await problem(response, 422))["type"] == REUSED


async def test_the_same_content_is_the_same_request_however_it_is_written(admin):
    await create(admin, expires_in_days=365)
    body = b'{ "scopes": ["incidents:read"],  "name": " playbooks " }'
    headers = ONCE | {"Content-Type": "application/json; charset=utf-8"}
    response = await admin.send("POST", KEYS, headers=headers, data=body)
    assert (await problem(response, 409))["type"] == SHOWN


async def test_a_key_with_quotes_is_the_same_as_one_without(admin):
    await create(admin, headers={HEADER: "abc"})
    assert (await problem(await create(admin, headers={HEADER: '"abc"'}), 409))["type"] == SHOWN


async def test_another_key_is_another_request(admin):
    await create(admin, headers={HEADER: "abc"})
    await create(admin, headers={HEADER: "ABC"})
    await create(admin, headers={})
    await create(admin, headers={})
    assert await number_of_keys(admin) == 4


MALFORMED = ["", '""', '"', '"a', 'a"', "a b", "a,b", '"a\\"b"', "x" * 256, f'"{"x" * 256}"', "é"]


@pytest.mark.parametrize("key", MALFORMED)
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_malformed_key_is_refused(admin, key):
    document = await problem(await create(admin, headers={HEADER: key}), 400)
    assert HEADER in document["detail"]
    assert await number_of_keys(admin) == 0


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_two_keys_are_one_too_many(api, admin):
    headers = [*admin.headers.items(), (HEADER, "a"), (HEADER, "a")]
    await problem(await api.client.post(KEYS, json=GOOD, headers=headers), 400)


@pytest.mark.parametrize("key", ["x" * 255, f'"{"x" * 255}"', '"a b, c"', "!#$%&'()*+-./:;<=>?@[]"])
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_whatever_is_printable_is_a_key(admin, key):
    assert (await create(admin, headers={HEADER: key})).status == 201
    await problem(await create(admin, headers={HEADER: key}), 409)


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_the_key_of_whoever_is_not_let_in_is_not_judged(api):
    await problem(await api.client.post(KEYS, json=GOOD, headers={HEADER: ""}), 401)
    stranger = {"X-API-Key": await api.key()} | {HEADER: ""}
    await problem(await api.client.post(KEYS, json=GOOD, headers=stranger), 403)


async def test_a_key_is_its_callers_own(api, admin):
    issue = api.services.admins.issue
    token = await api.services.database.write(issue, name="bob", expires_in=timedelta(hours=1))
    other = Admin(api, {"Authorization": f"Bearer {token}"})
    for caller in (admin, other):
        assert (await create(caller)).status == 201
    for caller in (admin, other):
        await problem(await create(caller), 409)
    assert await number_of_keys(admin) == 2


async def test_a_request_that_failed_may_be_sent_again(admin):
    await problem(await create(admin, name=""), 422)
    await problem(await create(admin, scopes=["all"]), 400)
    unknown = f"{KEYS}/{'x' * 16}/rotate"
    await problem(await admin.send("POST", unknown, headers=ONCE, json={}), 404)
    key = await admin.create_key()
    await admin.ask("DELETE", f"{KEYS}/{key['key_id']}")
    disabled = f"{KEYS}/{key['key_id']}/rotate"
    await problem(await admin.send("POST", disabled, headers=ONCE, json={}), 409)
    assert (await create(admin)).status == 201


async def test_a_key_is_remembered_for_24_hours_and_forgotten_then(api, clock):
    admin = Admin(api, {"Authorization": f"Bearer {await api.token(hours=48)}"})
    await create(admin)
    clock.advance(hours=24, microseconds=-1)
    await problem(await create(admin), 409)
    clock.advance(microseconds=1)
    assert (await create(admin)).status == 201
    await problem(await create(admin), 409)
    count = select(func.count()).select_from(idempotency_keys)
    assert await api.services.database.read(lambda c: c.execute(count).scalar_one()) == 1


async def test_of_two_at_once_one_takes_effect_and_the_other_is_told_to_wait(api, admin):
    with hashing_held(api):
        requests = {asyncio.create_task(create(admin)) for _ in range(2)}
        [refused], [waiting] = await asyncio.wait(requests, return_when=asyncio.FIRST_COMPLETED)
        assert (await problem(refused.result(), 409))["type"] == IN_FLIGHT
    assert (await waiting).status == 201
    assert (await problem(await create(admin), 409))["type"] == SHOWN
    assert await number_of_keys(admin) == 1


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
async def test_on_two_nodes_at_once_one_takes_effect_and_the_other_tells_of_it(nodes):
    admins = [Admin(node, await node.admin()) for node in nodes]
    with hashing_held(*nodes):
        requests = [asyncio.create_task(create(admin)) for admin in admins]
        await until(lambda: all(node.services.hasher.runs for node in nodes))
    responses = sorted(await asyncio.gather(*requests), key=lambda response: response.status)
    assert [response.status for response in responses] == [201, 409]
    created = await responses[0].json()
    document = await problem(responses[1], 409)
    assert (document["type"], document["record"]) == (SHOWN, f"key:{created['key_id']}")
    assert await number_of_keys(admins[0]) == 1
    assert len(await admins[0].audited(action="api-key.create")) == 1


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
async def test_what_one_node_did_another_knows(nodes):
    first, second = [Admin(node, await node.admin()) for node in nodes]
    await create(first)
    await problem(await create(second), 409)
    await problem(await create(second, name="other"), 422)


ATTEMPT = IdempotentRequest("key:0123456789ABCDEF", "once", "fingerprint")
CONTENT = {"session_id": "s1", "status": "queued", "list": [1, 2.5, None], "text": "é\n"}


async def store(database, clock, answer, *, status=202, secret=False, attempt=ATTEMPT):
    now = clock.now()
    await database.write(store_response, attempt, answer, status, now=now, secret=secret)


async def test_an_answer_without_a_secret_is_given_again(database, clock):
    await store(
        database, clock, Response(CONTENT, {"X": "y"}, change=AuditedChange(target="session:s1"))
    )
    stored = await database.read(find_stored_response, ATTEMPT, clock.now())
    answer = stored.replay("fingerprint")
    assert (answer.content, answer.status) == (CONTENT, 202)
    assert answer.headers == {"Idempotency-Replayed": "true"}
    assert answer.change is None, "it is recorded once"


async def test_a_secret_is_never_stored(database, clock):
    await store(database, clock, Response({"api_key": "sk_live_"}), secret=True)
    [row] = await database.read(lambda c: c.execute(select(idempotency_keys)).all())
    assert row.content is None
    assert "sk_live_" not in str(row)


async def test_only_the_first_answer_is_stored(database, clock):
    await store(database, clock, Response({"number": 1}))
    with pytest.raises(AlreadyApplied):
        await store(database, clock, Response({"number": 2}))
    stored = await database.read(find_stored_response, ATTEMPT, clock.now())
    assert stored.content == {"number": 1}


async def test_an_answer_is_found_by_its_caller_and_key_alone(database, clock):
    await store(database, clock, Response(CONTENT))
    for other in (replace(ATTEMPT, caller="key:x"), replace(ATTEMPT, key="twice")):
        assert await database.read(find_stored_response, other, clock.now()) is None
