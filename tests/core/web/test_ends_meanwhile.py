"""A credential that ends while a request is under way changes nothing any more."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest
import structlog
from sqlalchemy import Connection, text

from api_callers import Admin, hashing_held, until
from api_server import problem
from oauth_answers import oauth_error
from tocsin.credentials import Scope, disable_api_client, regenerate_secret

KEYS = "/api/admin/api-keys"
NEW = b'{"name": "parked", "scopes": ["incidents:read"]}'


async def _in_two_parts(admitted: asyncio.Event) -> AsyncIterator[bytes]:
    yield NEW[:10]
    await admitted.wait()
    yield NEW[10:]


async def test_an_admin_whose_token_ends_while_the_body_comes_creates_nothing(api):
    headers = await api.admin() | {"Content-Type": "application/json"}
    go_on = asyncio.Event()
    parked = asyncio.create_task(api.client.post(KEYS, data=_in_two_parts(go_on), headers=headers))
    await until(lambda: api.services.rate_limits.buckets[0].look("admin:ana").remaining < 1_000_000)
    await api.services.database.write(api.services.admins.revoke_all)
    go_on.set()
    await problem(await parked, 401)
    listed = await api.client.get(KEYS, headers=await api.admin())
    assert (await listed.json())["total"] == 0


async def test_an_admin_whose_token_expires_meanwhile_creates_nothing(api, clock):
    headers = {"Authorization": f"Bearer {await api.token(seconds=5)}"}
    with hashing_held(api):
        creating = asyncio.create_task(
            api.client.post(KEYS, data=NEW, headers={**headers, "Content-Type": "application/json"})
        )
        await until(lambda: api.services.hasher.runs > 0)
        clock.advance(seconds=5)
    await problem(await creating, 401)


ENDS = {
    "disabled": disable_api_client,
    "regenerated": lambda connection, client, now: regenerate_secret(connection, client, "x", now),
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_client_that_ends_while_it_is_served_gets_no_token(api, end):
    client = await api.client_credentials(Scope.INCIDENTS_READ)
    form = {"grant_type": "client_credentials", **client}
    database, now = api.services.database, api.services.clock.now()
    assert (await api.client.post("/oauth/token", data=form)).status == 200
    writing = threading.Event()

    def end_slowly(connection: Connection) -> None:
        end(connection, client["client_id"], now)
        writing.wait(10)

    ending = asyncio.create_task(database.write(end_slowly))
    asking = asyncio.create_task(api.client.post("/oauth/token", data=form))
    before = api.services.rate_limits.buckets[0].look(f"client:{client['client_id']}").remaining
    await until(
        lambda: (
            api.services.rate_limits.buckets[0].look(f"client:{client['client_id']}").remaining
            < before
        )
    )
    writing.set()
    await ending
    await oauth_error(await asking, 401, "invalid_client")


async def test_revocation_goes_by_no_clock(api, clock):
    admin = Admin(api, await api.admin())
    client = await api.client_credentials(Scope.INCIDENTS_READ)
    form = {"grant_type": "client_credentials", **client}

    async def token() -> dict[str, str]:
        answer = await (await api.client.post("/oauth/token", data=form)).json()
        return {"Authorization": f"Bearer {answer['access_token']}"}

    before = await token()
    clock.advance(seconds=-5)
    revoke = f"/api/admin/api-clients/{client['client_id']}/revoke-tokens"
    assert (await admin.send("POST", revoke)).status == 200
    after = await token()
    await problem(await api.client.get("/api/v1/incidents", headers=before), 401)
    assert (await api.client.get("/api/v1/incidents", headers=after)).status == 200


async def test_what_is_stored_never_reaches_the_log_by_an_error(api):
    drop = text("DROP TABLE audit")
    await api.services.database.write(lambda connection: connection.execute(drop) and None)
    with structlog.testing.capture_logs() as logs:
        headers = await api.admin() | {"Content-Type": "application/json"}
        assert (await api.client.post(KEYS, data=NEW, headers=headers)).status == 500
    assert "argon2" not in repr(logs) + str(logs[0]["exc_info"])
