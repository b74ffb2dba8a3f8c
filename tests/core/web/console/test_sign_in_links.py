"""One-time links that sign an admin in."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
import structlog
from sqlalchemy import Connection, func, select

from api_server import open_api
from tocsin.credentials import Admins, Vault, issue_sign_in_link
from tocsin.errors import OperatorError
from tocsin.store.tables import audit, console_sessions, sign_in_links

PAGE = "/sign-in/link"
on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


async def issue(api, name: str = "ana", **lifetime: float) -> str:
    """Return the code of a new link."""
    link = await api.services.database.write(
        issue_sign_in_link,
        url="https://tocsin.example",
        name=name,
        expires_in=timedelta(**lifetime or {"minutes": 10}),
        now=api.services.clock.now(),
    )
    url, _, code = link.partition("#")
    assert url == "https://tocsin.example/sign-in/link"
    return code


async def redeem(api, code: str, **headers: str):
    form = {"code": code}
    return await api.client.post(PAGE, data=form, headers=headers, allow_redirects=False)


def count(connection: Connection, table) -> int:
    return connection.scalar(select(func.count()).select_from(table))


async def test_a_link_signs_in_once(api):
    code = await issue(api)
    first = await redeem(api, code)
    assert (first.status, first.headers["Location"]) == (303, "/")
    cookie = first.headers["Set-Cookie"].partition(";")[0]
    page = await api.client.get("/", headers={"Cookie": cookie}, allow_redirects=False)
    assert page.status == 200
    assert "admin:ana" in await page.text()
    second = await redeem(api, code)
    assert second.status == 401
    assert "Set-Cookie" not in second.headers
    assert "tocsin admin sign-in-link" in await second.text()


async def test_two_at_once_begin_one_session(api):
    code = await issue(api)
    responses = await asyncio.gather(*(redeem(api, code) for _ in range(8)))
    assert sorted(response.status for response in responses) == [303, *[401] * 7]
    assert await api.services.database.read(count, console_sessions) == 1


async def test_a_link_expires(api, clock):
    code = await issue(api, minutes=10)
    clock.advance(minutes=10)
    assert (await redeem(api, code)).status == 401
    await issue(api)  # removes the ones before
    assert await api.services.database.read(count, sign_in_links) == 1


@on_sqlite
@pytest.mark.parametrize("lifetime", [timedelta(0), timedelta(hours=1, seconds=1)])
async def test_a_long_life_is_refused(api, lifetime):
    with pytest.raises(OperatorError, match="from 1s to 1h"):
        await issue(api, seconds=lifetime.total_seconds())


@on_sqlite
async def test_opening_a_link_uses_nothing_up(api):
    code = await issue(api)
    for method in (api.client.get, api.client.head):
        response = await method(PAGE)
        assert response.status == 200
        assert response.headers["Referrer-Policy"] == "no-referrer"
        assert response.headers["Cache-Control"] == "no-store"
    assert (await redeem(api, code)).status == 303


@on_sqlite
async def test_the_code_is_stored_and_logged_nowhere(api):
    with structlog.testing.capture_logs() as logs:
        code = await issue(api)
        stored = await api.services.database.read(
            lambda connection: connection.execute(select(sign_in_links)).all()
        )
        await redeem(api, code)
        await redeem(api, code)
    entries = await api.services.database.read(
        lambda connection: connection.execute(select(audit)).all()
    )
    assert code not in f"{stored}{entries}{logs}"


@on_sqlite
async def test_a_guess_begins_nothing_and_counts_like_every_failure(database, clock):
    async with open_api(database, clock, auth_failure_limit=5) as api:
        for code in ("", "nonsense", "ä", "x" * 43, "\x00"):
            assert (await redeem(api, code)).status == 401
        for code in ("x" * 43, await issue(api)):  # even the right one, which may be a lucky guess
            assert (await redeem(api, code)).status == 429
        assert await database.read(count, console_sessions) == 0


@on_sqlite
async def test_another_site_redeems_nothing(api):
    code = await issue(api)
    for site in ("cross-site", "same-site"):
        assert (await redeem(api, code, **{"Sec-Fetch-Site": site})).status == 403
    assert (await redeem(api, code)).status == 303


@on_sqlite
async def test_revoking_every_admin_token_ends_the_links(api):
    code = await issue(api)
    admins = Admins(Vault("A" * 43 + "=", source="test"), api.services.clock)
    await api.services.database.write(admins.revoke_all)
    assert (await redeem(api, code)).status == 401


@on_sqlite
async def test_a_sign_in_by_link_is_audited(api):
    await redeem(api, await issue(api))
    [entry] = await api.services.database.read(
        lambda c: c.execute(select(audit.c.action, audit.c.actor, audit.c.details)).all()
    )
    assert entry[:2] == ("console.sign-in", "admin:ana")
    assert entry.details == {"role": "admin", "method": "sign-in-link"}
