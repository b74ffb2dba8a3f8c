"""Whoever loses a role or a session at the issuer loses it here, and soon."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from aiohttp import ClientResponse
from sqlalchemy import select

from api_server import Api
from oidc_browser import CLIENT, Browser, open_for
from oidc_issuer import Issuer, Key, ec_key, rsa_key
from tocsin.store.tables import audit, console_sessions

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
SUBJECT = "auth0|5f7c8ec7"
LOGOUT = "/sign-in/back-channel-logout"
EVENT = "http://schemas.openid.net/event/backchannel-logout"


@pytest.fixture
async def issuer(clock) -> AsyncIterator[Issuer]:
    issuer = Issuer()
    issuer.keys = [rsa_key()]
    issuer.claims = {"sub": SUBJECT, "sid": "s-1", "roles": ["admin"]}
    renew(issuer, clock)
    await issuer.start()
    yield issuer
    await issuer.stop()


def renew(issuer: Issuer, clock, **passed: float) -> None:
    """Let time pass; the issuer's tokens are of the time after that."""
    clock.advance(**passed)
    now = int(clock.now().timestamp())
    issuer.claims |= {"iat": now, "exp": now + 300}


@pytest.fixture
async def api(issuer, database, clock) -> AsyncIterator[Api]:
    async with open_for(issuer, database, clock) as api:
        yield api


@pytest.fixture
async def browser(api) -> Browser:
    """A browser in which an admin has signed in."""
    browser = Browser(api)
    assert (await browser.sign_in()).status == 303
    return browser


@pytest.fixture
async def refreshing(issuer, api) -> Browser:
    """The same, where the issuer gave a refresh token."""
    issuer.gives_refresh_tokens = True
    browser = Browser(api)
    assert (await browser.sign_in()).status == 303
    return browser


async def roles(api: Api) -> list[str]:
    rows = select(console_sessions.c.role)
    return await api.services.database.read(lambda c: list(c.scalars(rows)))


async def endings(api: Api) -> list[tuple[str, str]]:
    rows = select(audit.c.actor, audit.c.details["reason"].as_string())
    ended = rows.where(audit.c.action == "console.session-end")
    return await api.services.database.read(lambda c: [tuple(row) for row in c.execute(ended)])


# By refresh token


async def test_a_session_is_checked_after_a_quarter_of_an_hour_and_goes_on(
    refreshing, issuer, clock
):
    renew(issuer, clock, minutes=14, seconds=59)
    assert (await refreshing.get("/")).status == 200
    assert issuer.fetches["token"] == 1
    for _ in range(3):
        renew(issuer, clock, minutes=15)
        assert (await refreshing.get("/")).status == 200
        assert (await refreshing.get("/")).status == 200
    assert issuer.fetches["token"] == 4


async def test_whoever_lost_the_role_is_signed_out_at_the_next_check(refreshing, issuer, clock):
    issuer.claims["roles"] = []
    renew(issuer, clock, minutes=15)
    assert (await refreshing.get("/")).headers["Location"].startswith("/sign-in?")
    assert await roles(refreshing.api) == []
    [(actor, reason)] = await endings(refreshing.api)
    assert actor == f"oidc:{SUBJECT}"
    assert "do not have a role in Tocsin" in reason


async def test_an_admin_who_became_a_viewer_changes_nothing_any_more(refreshing, issuer, clock):
    issuer.claims["roles"] = ["viewer"]
    renew(issuer, clock, minutes=15)
    assert (await refreshing.get("/admin/api-keys")).status == 403
    assert await roles(refreshing.api) == ["viewer"]


async def test_a_form_is_checked_before_it_is_taken(refreshing, issuer, clock):
    issuer.is_signed_in = False
    renew(issuer, clock, minutes=15)
    assert (await refreshing.person.post("/schedules/new", name="x")).status == 401
    assert await roles(refreshing.api) == []


@pytest.mark.parametrize(
    "change",
    [{"sub": "another"}, {"aud": "another-client"}, {"nonce": "another"}, {"exp": 1_000_000_000}],
)
async def test_a_refreshed_id_token_that_does_not_hold_ends_the_session(
    refreshing, issuer, clock, change
):
    renew(issuer, clock, minutes=15)
    issuer.claims |= change
    assert (await refreshing.get("/")).status == 303
    assert await roles(refreshing.api) == []


async def test_without_the_issuer_a_session_lasts_half_an_hour_after_its_last_check(
    refreshing, issuer, clock
):
    issuer.refusal = (503, {})
    for _ in range(2):
        renew(issuer, clock, minutes=14)
        assert (await refreshing.get("/")).status == 200
    renew(issuer, clock, minutes=2)
    assert (await refreshing.get("/")).status == 303
    issuer.refusal = None
    renew(issuer, clock, minutes=1)
    assert (await refreshing.get("/")).status == 200


async def test_the_refresh_token_is_encrypted(refreshing):
    rows = select(console_sessions.c.sealed_grant)
    [stored] = await refreshing.api.services.database.read(lambda c: list(c.scalars(rows)))
    assert stored.startswith("gAAAA")


# In the browser


async def follow(browser: Browser, response: ClientResponse) -> ClientResponse:
    """Go to the issuer and back, as a browser does."""
    assert response.headers["Location"].startswith("/sign-in/oidc?"), response.headers
    lead = response.headers["Location"]
    return await browser.get(await browser.go_there(lead))


async def test_without_a_refresh_token_the_browser_asks_the_issuer_in_passing(
    browser, issuer, clock
):
    renew(issuer, clock, minutes=15)
    response = await follow(browser, await browser.get("/graph?entity=x"))
    assert issuer.asked_for["prompt"] == "none"
    assert (response.status, response.headers["Location"]) == (303, "/graph?entity=x")
    assert (await browser.get("/")).status == 200
    assert await roles(browser.api) == ["admin"]


async def test_a_check_does_not_prolong_a_session_beyond_half_a_day(browser, issuer, clock):
    for _ in range(50):
        renew(issuer, clock, minutes=14, seconds=24)
        response = await browser.get("/")
        if response.status == 303 and "check" in response.headers["Location"]:
            await follow(browser, response)
    assert (await browser.get("/")).headers["Location"].startswith("/sign-in?")


@pytest.mark.parametrize(("change", "status"), [({"is_signed_in": False}, 401), ({}, 403)])
async def test_whoever_the_issuer_does_not_confirm_is_signed_out(
    browser, issuer, clock, change, status
):
    issuer.claims["roles"] = []
    for name, value in change.items():
        setattr(issuer, name, value)
    renew(issuer, clock, minutes=15)
    response = await follow(browser, await browser.get("/"))
    assert response.status == status
    assert await roles(browser.api) == []
    assert len(await endings(browser.api)) == 1


async def test_without_the_issuer_the_browser_is_not_sent_there(browser, issuer, clock):
    await issuer.stop()
    for minutes in (15, 14):
        renew(issuer, clock, minutes=minutes)
        lead = await browser.get("/graph")
        back = await browser.get(lead.headers["Location"])
        assert (back.status, back.headers["Location"]) == (303, "/graph")
        assert (await browser.get("/graph")).status == 200
    renew(issuer, clock, minutes=1)
    lead = await browser.get("/graph")
    assert (await browser.get(lead.headers["Location"])).status == 503
    await issuer.start()
    assert (await follow(browser, lead)).headers["Location"] == "/graph"


async def test_a_code_that_the_issuer_cannot_exchange_now_ends_no_session(browser, issuer, clock):
    issuer.refusal = (500, {})
    renew(issuer, clock, minutes=15)
    assert (await follow(browser, await browser.get("/graph"))).headers["Location"] == "/"
    assert (await browser.get("/graph")).status == 200


async def test_somebody_else_at_the_issuer_gets_a_session_of_their_own(browser, issuer, clock):
    issuer.claims |= {"sub": "ben", "roles": ["viewer"]}
    renew(issuer, clock, minutes=15)
    assert (await follow(browser, await browser.get("/"))).status == 303
    assert await roles(browser.api) == ["viewer"]


async def test_a_form_is_taken_for_a_quarter_of_an_hour_beyond_the_check(browser, issuer, clock):
    renew(issuer, clock, minutes=29)
    assert (await browser.person.post("/schedules/new", name="x")).status == 403  # no form token
    renew(issuer, clock, minutes=1)
    assert (await browser.person.post("/schedules/new", name="x")).status == 401


async def test_an_admin_token_needs_no_check(api, clock):
    from console import Person

    person = Person(api)
    await person.sign_in()
    clock.advance(minutes=45)
    await person.html("/")


# By the issuer


def logout_claims(issuer: Issuer, clock, **changed: object) -> dict:
    now = int(clock.now().timestamp())
    claims = {"aud": CLIENT, "iat": now, "exp": now + 120, "jti": "j-1", "events": {EVENT: {}}}
    return claims | {"sub": SUBJECT, "sid": "s-1"} | changed


async def log_out(api: Api, token: str) -> ClientResponse:
    return await api.client.post(LOGOUT, data={"logout_token": token})


@pytest.mark.parametrize("change", [{}, {"sub": None}, {"sid": None}])
async def test_a_logout_at_the_issuer_ends_the_session_at_once(browser, issuer, clock, change):
    token = issuer.sign(logout_claims(issuer, clock, **change), typ="logout+jwt")
    response = await log_out(browser.api, token)
    assert (response.status, response.headers["Cache-Control"]) == (200, "no-store")
    assert (await browser.get("/")).status == 303
    assert await endings(browser.api) == [("issuer", "logged out at the issuer")]


async def test_a_logout_ends_no_other_session(browser, issuer, clock):
    for change in ({"sid": "s-2"}, {"sub": "ben", "sid": None}):
        assert (await log_out(browser.api, issuer.sign(logout_claims(issuer, clock, **change)))).ok
    assert (await browser.get("/")).status == 200


async def test_a_repeated_logout_does_not_end_a_later_session(browser, issuer, clock):
    claims = logout_claims(issuer, clock, sid=None)
    renew(issuer, clock, minutes=1, seconds=1)
    await browser.sign_in()
    assert (await log_out(browser.api, issuer.sign(claims))).ok
    assert (await browser.get("/")).status == 200


NO_LOGOUT = {
    "an ID token": {"events": None, "nonce": "n"},
    "a nonce": {"nonce": "n"},
    "no event": {"events": {}},
    "another event": {"events": {"https://example.com/event": {}}},
    "an event that is no object": {"events": {EVENT: True}},
    "events that are no object": {"events": [EVENT]},
    "nobody": {"sub": None, "sid": None},
    "a session that is no text": {"sid": ["s-1"]},
    "another client": {"aud": "another-client"},
    "another issuer": {"iss": "https://evil.example"},
    "no identifier": {"jti": None},
    "no time": {"iat": None},
    "no expiry": {"exp": None},
    "expired": {"exp": 1_000_000_000},
    "from the future": {"iat": 4_000_000_000},
    "before all time": {"iat": -100_000_000_000},
}


@pytest.mark.parametrize("change", NO_LOGOUT.values(), ids=NO_LOGOUT)
async def test_what_is_no_logout_token_ends_nothing(browser, issuer, clock, change):
    response = await log_out(browser.api, issuer.sign(logout_claims(issuer, clock, **change)))
    assert response.status == 400
    assert (await response.json())["error"] == "invalid_request"
    assert (await browser.get("/")).status == 200


@pytest.mark.parametrize("typ", ["at+jwt", "secevent+jwt"])
async def test_a_token_of_another_type_ends_nothing(browser, issuer, clock, typ):
    token = issuer.sign(logout_claims(issuer, clock), typ=typ)
    assert (await log_out(browser.api, token)).status == 400


async def test_a_token_of_another_key_ends_nothing(browser, issuer, clock):
    stranger = Key(ec_key().private, "ES256", "rsa")
    claims = logout_claims(issuer, clock, iss=issuer.url)
    assert (await log_out(browser.api, stranger.sign(claims))).status == 400
    assert (await log_out(browser.api, "")).status == 400


async def test_a_logout_with_a_new_key_while_the_issuer_is_away_is_to_be_repeated(
    browser, issuer, clock
):
    issuer.status = 503
    token = ec_key("new").sign(logout_claims(issuer, clock, iss=issuer.url))
    response = await log_out(browser.api, token)
    assert (response.status, response.headers["Retry-After"]) == (503, "10")


async def test_a_page_that_follows_again_while_a_check_is_due_is_loaded_again_and_follows_on(
    browser, issuer, clock
):
    """As after ten minutes, in a page that comes to the front, or after a restart."""
    renew(issuer, clock, minutes=15)
    stream = await browser.get("/live/")
    assert (stream.content_type, await stream.text()) == (
        "text/event-stream",
        'event: gone\ndata: ""\n\n',
    )
    assert "check" in (await browser.get("/")).headers["Location"]  # as the browser loads it
    assert (await browser.sign_in()).status == 303
    async with await browser.get("/live/") as stream:
        assert await stream.content.readline() == b"event: shown\n"


async def test_the_interval_is_a_setting(issuer, database, clock):
    async with open_for(issuer, database, clock, oidc_recheck_seconds=60) as api:
        browser = Browser(api)
        await browser.sign_in()
        renew(issuer, clock, seconds=timedelta(minutes=1).total_seconds())
        assert "check" in (await browser.get("/")).headers["Location"]
