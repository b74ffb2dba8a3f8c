"""What is pushed is stored before it is answered, and nobody pushes who may not."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from collections.abc import AsyncIterator
from io import BytesIO

import pytest
from sqlalchemy import func, select
from standardwebhooks import Webhook

from api_server import PUSH_SECRET, PUSH_TOKEN, PUSHED, open_api, problem
from tocsin.incidents import list_coverage, list_quarantine
from tocsin.stops import StopKind, StopOrder, begin_stop, end_stop
from tocsin.store.tables import events, incidents
from tocsin.web.rate_limits import PUSH_QUOTA

on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)

PATH = f"/api/push/{PUSHED}"
TOKEN = {"Authorization": f"Bearer {PUSH_TOKEN}"}
WRONG = {"Authorization": "Bearer a-token-of-somebody-else"}
CASE = {"external_id": "case-17", "title": "Odd sign-in", "severity": "High"}
JSON = {"Content-Type": "application/json"}
BODY_LIMIT = 16 * 2**20


async def push(api, body=CASE, *, headers=TOKEN, path=PATH):
    """Return the response to a body, which is sent as it is if it is bytes."""
    if not isinstance(body, AsyncIterator):
        body = BytesIO(body if isinstance(body, bytes) else json.dumps(body).encode())
    return await api.client.post(path, data=body, headers=JSON | headers)


async def taken(response) -> dict:
    assert response.status == 200, await response.text()
    return await response.json()


def counted(received: int, new: int, changed: int, rejected: int) -> dict:
    counts = {"received": received, "new": new, "changed": changed, "rejected": rejected}
    return {"provider": PUSHED, **counts}


async def rows(api, table) -> int:
    return await api.services.database.read(
        lambda connection: connection.scalar(select(func.count()).select_from(table))
    )


async def quarantined(api) -> list[dict]:
    return (await api.services.database.read(list_quarantine, PUSHED, 100)).records


async def test_what_is_pushed_is_stored_and_alerted_once_it_is_answered(api):
    answer = await taken(await push(api))
    assert answer == counted(1, new=1, changed=0, rejected=0)
    assert (await rows(api, incidents), await rows(api, events)) == (1, 1)


async def test_the_same_again_changes_nothing_and_another_version_does(api):
    await push(api)
    assert await taken(await push(api)) == counted(1, new=0, changed=0, rejected=0)
    closed = await push(api, CASE | {"status": "Closed"})
    assert await taken(closed) == counted(1, new=0, changed=1, rejected=0)
    assert await rows(api, events) == 1


async def test_senders_that_tell_of_one_incident_at_once_make_one_of_it(api):
    answers = await asyncio.gather(*(push(api) for _ in range(20)))
    assert sum([(await taken(answer))["new"] for answer in answers]) == 1
    assert (await rows(api, incidents), await rows(api, events)) == (1, 1)


async def test_what_cannot_be_understood_is_kept_aside_and_the_rest_stored(api):
    answer = await taken(await push(api, [CASE, {"title": "nameless"}]))
    assert answer == counted(2, new=1, changed=0, rejected=1)
    [kept] = await quarantined(api)
    assert (kept["location"], kept["content"]) == ("incident 2 of 2", '{"title":"nameless"}')
    assert "external_id: missing" in kept["reason"]


@on_sqlite
@pytest.mark.parametrize("body", [b"{", b"\xff", b"", b"5", b"[{}]", b'{"external_id": []}'])
async def test_what_is_refused_is_kept_aside_as_it_came(api, body):
    refusal = await problem(await push(api, body), 422)
    assert refusal["detail"].startswith("The payload could not be parsed: ")
    [kept] = await quarantined(api)
    assert kept["content"] == body.decode("utf-8", "replace")
    assert kept["reason"] in refusal["detail"]
    assert await rows(api, incidents) == 0


async def test_a_suspended_node_stores_nothing_and_the_sender_repeats(api):
    api.services.node.suspension = "the clock of this node is 5m ahead of the database's"
    response = await push(api)
    refusal = await problem(response, 503)
    assert "5m ahead" in refusal["detail"]
    assert int(response.headers["Retry-After"]) == 10
    await api.services.inbox.flush()
    [failure] = await api.services.database.read(list_coverage, PUSHED, 10)
    assert (failure["outcome"], failure["pages"]) == ("suspended", 1)
    assert (await rows(api, incidents), await rows(api, events)) == (0, 0)
    api.services.node.suspension = None
    assert await taken(await push(api)) == counted(1, new=1, changed=0, rejected=0)


@on_sqlite
async def test_the_token_may_come_as_a_password_or_the_body_signed(api, clock):
    basic = b64encode(f"anyone:{PUSH_TOKEN}".encode()).decode()
    assert (await push(api, headers={"Authorization": f"Basic {basic}"})).status == 200
    signature = Webhook(PUSH_SECRET).sign("msg_1", clock.now(), json.dumps(CASE))
    signed = {
        "webhook-id": "msg_1",
        "webhook-timestamp": str(int(clock.now().timestamp())),
        "webhook-signature": signature,
    }
    assert (await push(api, headers=signed)).status == 200
    await problem(await push(api, CASE | {"title": "forged"}, headers=signed), 401)


@on_sqlite
@pytest.mark.parametrize("headers", [{}, WRONG, {"Authorization": "Bearer \xff"}])
async def test_who_may_not_push_learns_nothing_and_leaves_nothing(api, headers):
    for body in (CASE, b"not JSON"):
        response = await push(api, body, headers=headers)
        await problem(response, 401)
        assert response.headers["WWW-Authenticate"].startswith("Bearer ")
        assert "RateLimit" not in response.headers
    assert await quarantined(api) == []
    assert await rows(api, incidents) == 0


@on_sqlite
async def test_an_unknown_provider_is_answered_like_a_wrong_path(api):
    unknown = await problem(await push(api, path="/api/push/nobody"), 404)
    wrong = await problem(await push(api, path="/api/pull/nobody"), 404)
    assert unknown | {"instance": ""} == wrong | {"instance": ""}


@on_sqlite
async def test_a_body_is_bounded_and_json(api):
    body = json.dumps(CASE).encode().ljust(BODY_LIMIT)
    assert (await push(api, body)).status == 200
    for sent in (body + b" ", chunks(body + b" ")):
        refusal = await problem(await push(api, sent), 413)
        assert "16 MiB" in refusal["detail"]
    await problem(await push(api, headers=TOKEN | {"Content-Type": "text/plain"}), 415)


async def chunks(body: bytes):
    """Yield a body in parts, whose length is not declared."""
    for start in range(0, len(body), 2**20):
        yield body[start : start + 2**20]


# Limits


@on_sqlite
async def test_guessing_at_a_token_is_limited_by_address(database, clock):
    async with open_api(database, clock, auth_failure_limit=2) as api:
        for number, status in enumerate((401, 401, 429)):
            response = await push(api, headers={"Authorization": f"Bearer guess-{number}"})
            await problem(response, status)
        await problem(await push(api), 429)
        clock.advance(seconds=int(response.headers["Retry-After"]))
        assert (await push(api)).status == 200


@on_sqlite
async def test_who_was_let_in_lately_waits_for_no_neighbor_who_guesses(database, clock):
    async with open_api(database, clock, auth_failure_limit=1) as api:
        assert (await push(api)).status == 200
        for _ in range(5):
            await push(api, headers=WRONG)
        assert (await push(api)).status == 200
        await problem(await push(api, headers=WRONG), 429)


@on_sqlite
async def test_a_sender_with_a_replaced_token_does_not_lock_out_the_new_one(database, clock):
    async with open_api(database, clock, auth_failure_limit=2) as api:
        stale = [(await push(api, headers=WRONG)).status for _ in range(10)]
        assert (stale[0], stale[-1]) == (401, 429)
        assert (await push(api)).status == 200


@on_sqlite
async def test_a_flood_is_told_to_come_again_in_a_way_that_senders_heed(api, clock):
    take = api.services.rate_limits.count_push
    for _ in range(PUSH_QUOTA.burst):
        take(PUSHED)
    response = await push(api)
    await problem(response, 503)
    assert response.headers["RateLimit"].startswith('"push";r=0')
    clock.advance(seconds=int(response.headers["Retry-After"]))
    assert (await push(api)).status == 200


@on_sqlite
async def test_who_may_not_push_uses_up_nothing_of_the_limit(api):
    for _ in range(3):
        await push(api, headers=WRONG)
    response = await push(api)
    assert response.headers["RateLimit"].startswith(f'"push";r={PUSH_QUOTA.burst - 1};')


@on_sqlite
async def test_a_push_to_a_stopped_provider_is_to_be_repeated_and_is_counted(api, clock):
    stop = StopKind.PROVIDER, PUSHED
    await api.services.database.write(begin_stop, *stop, StopOrder("ana"), clock.now())
    response = await push(api)
    document = await problem(response, 503)
    assert (response.headers["Retry-After"], "try again in 60 s" in document["detail"]) == (
        "60",
        True,
    )
    await api.services.inbox.flush()
    [row] = await api.services.database.read(list_coverage, PUSHED, 10)
    assert (row["stream"], row["outcome"], row["pages"]) == ("push", "stopped", 1)
    await problem(await push(api, headers=WRONG), 401)
    await api.services.database.write(end_stop, *stop, "ana", clock.now())
    clock.advance(seconds=1)
    assert (await taken(await push(api)))["new"] == 1
