"""Signing in to the console at an OpenID Connect issuer, as a browser does it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from urllib.parse import parse_qsl

import pytest
from aiohttp import ClientResponse
from sqlalchemy import select
from yarl import URL

from api_server import Api, open_api
from console import text_of
from oidc_browser import CALLBACK, CLIENT, LEAD, Browser, open_for
from oidc_issuer import Issuer, Key, ec_key, rsa_key
from tocsin.store.tables import audit, console_sessions

KEPT = "__Host-tocsin-sign-in"
SUBJECT = "auth0|5f7c8ec7"

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@pytest.fixture
async def issuer(clock) -> AsyncIterator[Issuer]:
    issuer = Issuer()
    issuer.keys = [rsa_key()]
    now = int(clock.now().timestamp())
    issuer.claims = {"sub": SUBJECT, "iat": now, "exp": now + 300, "roles": ["admin"]}
    await issuer.start()
    yield issuer
    await issuer.stop()


@pytest.fixture
async def api(issuer, database, clock) -> AsyncIterator[Api]:
    async with open_for(issuer, database, clock) as api:
        yield api


@pytest.fixture
def browser(api) -> Browser:
    return Browser(api)


async def refused(browser: Browser, response: ClientResponse, status: int = 401) -> str:
    """Return what whoever is not let in reads."""
    html = await response.text()
    assert response.status == status, html
    assert "__Host-tocsin" not in browser.cookies
    assert browser.cookies.get(KEPT, "") == ""
    assert await sessions(browser.api) == []
    return text_of(html)


async def sessions(api: Api) -> list[tuple[str, str, str]]:
    columns = console_sessions.c.principal, console_sessions.c.name, console_sessions.c.role
    return await api.services.database.read(
        lambda connection: [tuple(row) for row in connection.execute(select(*columns))]
    )


# Who gets in


async def test_who_has_the_admins_role_is_an_admin_and_led_to_the_page_they_wanted(browser, issuer):
    issuer.claims |= {"preferred_username": "ana", "name": "Ana Example"}
    response = await browser.sign_in("/?x=1")
    assert (response.status, response.headers["Location"]) == (303, "/?x=1")
    assert await sessions(browser.api) == [(f"oidc:{SUBJECT}", "ana", "admin")]
    assert "ana admin" in await browser.person.text("/")


async def test_who_has_the_viewers_role_may_look(browser, issuer):
    issuer.claims |= {"roles": ["other", "viewer"]}
    await browser.sign_in()
    assert [role for _, _, role in await sessions(browser.api)] == ["viewer"]
    await browser.person.html("/admin/api-keys", 403)


async def test_a_sign_in_stands_in_the_audit_log(browser):
    await browser.sign_in()
    columns = audit.c.actor, audit.c.action
    rows = await browser.api.services.database.read(
        lambda connection: [tuple(row) for row in connection.execute(select(*columns))]
    )
    assert rows == [(f"oidc:{SUBJECT}", "console.sign-in")]


@pytest.mark.parametrize(
    ("claims", "name"),
    [
        ({"name": "Ana Example", "email": "ana@example.com"}, "Ana Example"),
        ({"preferred_username": " ", "email": "ana@example.com"}, "ana@example.com"),
        ({"preferred_username": 7, "name": "two\nlines"}, SUBJECT),
        ({}, SUBJECT),
    ],
)
async def test_people_are_called_what_the_issuer_calls_them(browser, issuer, claims, name):
    issuer.claims |= claims
    await browser.sign_in()
    assert [found for _, found, _ in await sessions(browser.api)] == [name]


async def test_the_sign_in_page_leads_to_the_issuer_and_still_takes_tokens(browser):
    html = await (await browser.get("/sign-in?next=/graph%3Fa%3D1")).text()
    assert 'href="/sign-in/oidc?next=%2Fgraph%3Fa%3D1"' in html
    assert "Admin token" in text_of(html)


async def test_the_issuer_is_asked_as_the_standards_have_it(browser, issuer):
    await browser.sign_in()
    asked = issuer.asked_for
    assert asked.pop("realm") == "soc"
    assert len(asked.pop("state")) == len(asked.pop("nonce")) == 43
    assert len(asked.pop("code_challenge")) == 43
    assert asked == {
        "response_type": "code",
        "client_id": CLIENT,
        "redirect_uri": "https://tocsin.example/sign-in/callback",
        "scope": "openid profile email",
        "code_challenge_method": "S256",
    }


async def test_what_the_browser_keeps_is_out_of_reach_and_soon_gone(browser):
    response = await browser.get(LEAD)
    cookie = response.headers["Set-Cookie"]
    for part in (KEPT, "HttpOnly", "Secure", "SameSite=Lax", "Path=/", "Max-Age=600"):
        assert part in cookie
    query = dict(parse_qsl(URL(response.headers["Location"]).raw_query_string))
    assert query["state"] not in cookie
    assert query["nonce"] not in cookie


@pytest.mark.parametrize("supported", [["client_secret_post"], ["client_secret_basic"]])
async def test_tocsin_proves_itself_as_the_issuer_takes_it(browser, issuer, supported):
    issuer.discovery = {"token_endpoint_auth_methods_supported": supported}
    assert (await browser.sign_in()).status == 303


async def test_a_public_client_proves_itself_by_pkce_alone(issuer, database, clock):
    issuer.secret = None
    async with open_for(issuer, database, clock) as api:
        assert (await Browser(api).sign_in()).status == 303


async def test_roles_and_their_claim_are_settings(issuer, database, clock):
    issuer.claims |= {"realm_access": {"roles": ["soc"]}}
    changed = {"oidc_role_claim": "realm_access.roles", "oidc_viewer_role": "soc"}
    async with open_for(issuer, database, clock, **changed) as api:
        await Browser(api).sign_in()
        assert [role for _, _, role in await sessions(api)] == ["viewer"]


async def test_the_most_powerful_of_the_issuers_roles_counts(issuer, database, clock):
    issuer.claims |= {"roles": ["viewer", "analyst", "soc-ops"]}
    async with open_for(issuer, database, clock, oidc_operator_role="soc-ops") as api:
        await Browser(api).sign_in()
        assert [role for _, _, role in await sessions(api)] == ["operator"]
    issuer.claims |= {"roles": ["viewer", "analyst"]}  # a name that is not in use
    async with open_for(issuer, database, clock) as api:
        await Browser(api).sign_in()
        assert "viewer" in [role for _, _, role in await sessions(api)]
        assert "analyst" not in [role for _, _, role in await sessions(api)]


async def test_without_the_issuer_its_sessions_end(issuer, database, clock):
    async with open_for(issuer, database, clock) as api:
        await Browser(api).sign_in()
        assert await sessions(api)
    async with open_api(database, clock) as api:
        assert await sessions(api) == []
        assert (await api.client.get(LEAD)).status == 404


@pytest.mark.parametrize(
    "place", ["https://evil.example", "//evil.example", "/\\evil.example", "/" + "x" * 1_500]
)
async def test_it_leads_to_no_page_elsewhere_and_to_none_that_no_cookie_holds(browser, place):
    assert (await browser.sign_in(place)).headers["Location"] == "/"


# Who does not


async def test_without_a_role_it_is_said_which_is_missing(browser, issuer):
    issuer.claims |= {"roles": ["<script>"], "name": "<b>Ana</b>"}
    text = await refused(browser, await browser.sign_in(), 403)
    assert "signed you in as <b>Ana</b>" in text
    assert "The claim roles contains neither admin (admin) nor viewer (viewer)" in text


async def test_the_issuers_own_error_is_shown_as_text(browser, issuer):
    issuer.answer = {
        "code": None,
        "error": "access_denied",
        "error_description": "<script>alert(1)</script>",
    }
    text = await refused(browser, await browser.sign_in())
    assert "rejected the sign-in: access_denied (<script>alert(1)</script>)" in text
    assert issuer.fetches["token"] == 0


@pytest.mark.parametrize("state", ["x", "", "é", None])
async def test_an_answer_with_another_state_is_not_looked_at(browser, issuer, state):
    issuer.answer = {"state": state}
    assert "was not started in this browser" in await refused(browser, await browser.sign_in())
    assert issuer.fetches["token"] == 0


async def test_an_answer_in_another_browser_is_not_looked_at(browser, issuer):
    there = await browser.sign_in_there()
    for other in (Browser(browser.api), Browser(browser.api, {KEPT: "x"})):
        await refused(other, await other.get(there))
    own = Browser(browser.api)
    await own.get(LEAD)
    await refused(own, await own.get(there))
    assert issuer.fetches["token"] == 0


async def test_an_errors_words_are_shown_to_nobody_who_did_not_begin(browser):
    response = await browser.get(f"{CALLBACK}?error=call+this+number&state=x")
    assert "number" not in await refused(browser, response)


async def test_an_answer_is_taken_once(browser, issuer):
    there, kept = await browser.sign_in_there(), dict(browser.cookies)
    assert (await browser.get(there)).status == 303
    again = Browser(browser.api, kept)
    response = await again.get(there)
    assert response.status == 401
    assert "already completed" in text_of(await response.text())
    assert "__Host-tocsin" not in again.cookies
    assert issuer.fetches["token"] == 1


async def test_an_answer_after_ten_minutes_is_too_late(browser, issuer, clock):
    there = await browser.sign_in_there()
    clock.advance(minutes=10, seconds=1)
    assert "has expired (10 minutes)" in await refused(browser, await browser.get(there))
    assert issuer.fetches["token"] == 0


async def test_a_parameter_that_comes_twice_is_no_answer(browser, issuer):
    there = await browser.sign_in_there()
    await refused(browser, await browser.get(f"{there}&code=x"))
    assert issuer.fetches["token"] == 0


FORGED = {
    "another nonce": {"nonce": "x"},
    "no nonce": {"nonce": None},
    "a nonce beyond ASCII": {"nonce": "é"},
    "a nonce that is no text": {"nonce": ["x"]},
    "another audience": {"aud": "another-client"},
    "another audience beside ours": {"aud": [CLIENT, "another-client"]},
    "another client's": {"azp": "another-client"},
    "another issuer": {"iss": "https://evil.example"},
    "expired": {"exp": 1_000_000_000},
    "no expiry": {"exp": None},
    "from the future": {"iat": 4_000_000_000},
    "no moment": {"iat": None},
    "no subject": {"sub": None},
    "a subject on two lines": {"sub": "ana\nadmin:ben"},
}


@pytest.mark.parametrize("change", FORGED.values(), ids=FORGED)
async def test_an_id_token_that_does_not_hold_admits_nobody(browser, issuer, change):
    issuer.claims |= change
    assert "ID token that is not valid" in await refused(browser, await browser.sign_in())


async def test_an_id_token_for_several_admits_who_came_by_this_client(browser, issuer):
    issuer.claims |= {"aud": [CLIENT, "another-client"], "azp": CLIENT}
    assert (await browser.sign_in()).status == 303


async def test_an_id_token_by_another_key_admits_nobody(browser, issuer):
    there = await browser.sign_in_there()  # the keys are known by then
    issuer.keys = [Key(rsa_key("another").private, "RS256", "rsa")]
    await refused(browser, await browser.get(there))


async def test_an_access_token_is_no_id_token(browser, issuer, monkeypatch):
    sign = issuer.keys[0].sign
    key = ec_key()
    issuer.keys = [key]
    monkeypatch.setattr(key, "sign", lambda claims: sign(claims, typ="at+jwt"))
    await refused(browser, await browser.sign_in())


@pytest.mark.parametrize("iss", ["https://evil.example", ""])
async def test_an_answer_in_another_issuers_name_is_refused(browser, issuer, iss):
    issuer.answer = {"iss": iss}
    assert "from another issuer" in await refused(browser, await browser.sign_in())
    assert issuer.fetches["token"] == 0


async def test_an_issuer_that_names_itself_always_has_to(browser, issuer):
    issuer.discovery = {"authorization_response_iss_parameter_supported": True}
    await refused(browser, await browser.sign_in())
    issuer.answer = {"iss": issuer.url}
    assert (await browser.sign_in()).status == 303


async def test_a_code_that_the_issuer_refuses_admits_nobody(browser, issuer):
    issuer.answer = {"code": "another"}
    assert "rejected the authorization code" in await refused(browser, await browser.sign_in())


AWAY = {
    "a wrong secret": (401, {"error": "invalid_client"}),
    "an error of its own": (500, {}),
    "no ID token": (200, {"access_token": "a"}),
    "no object": (200, []),
}


@pytest.mark.parametrize("answer", AWAY.values(), ids=AWAY)
async def test_an_issuer_that_takes_no_code_is_said_to_be_away(browser, issuer, answer):
    issuer.refusal = answer
    text = await refused(browser, await browser.sign_in(), 503)
    assert "is unavailable" in text
    assert issuer.url not in text


UNUSABLE = {
    "no place to sign in": {"authorization_endpoint": None},
    "a place that is none": {"authorization_endpoint": "http://["},
    "a script": {"authorization_endpoint": "javascript:alert(1)"},
    "no place for codes": {"token_endpoint": None},
}


@pytest.mark.parametrize("discovery", UNUSABLE.values(), ids=UNUSABLE)
async def test_an_issuer_at_which_nobody_signs_in_is_said_to_be_away(browser, issuer, discovery):
    issuer.discovery = discovery
    response = await browser.get(f"{LEAD}?next=/x")
    assert (response.status, response.headers["Retry-After"]) == (503, "10")
    assert 'name="next" value="/x"' in await response.text()


async def test_many_who_want_to_sign_in_cost_the_issuer_one_question(browser, issuer):
    for _ in range(20):
        assert (await browser.get(LEAD)).status == 303
    assert issuer.fetches == {"discovery": 1, "keys": 1}


async def test_an_address_that_fails_too_often_has_no_code_exchanged(issuer, database, clock):
    async with open_for(issuer, database, clock, auth_failure_limit=1) as api:
        browser = Browser(api)
        assert (await browser.get(CALLBACK)).status == 401
        there = await browser.sign_in_there()
        assert (await browser.get(there)).status == 429
        assert issuer.fetches["token"] == 0


async def test_who_is_not_let_in_is_counted_in_the_audit_log(browser):
    await browser.get(CALLBACK)
    services = browser.api.services
    await services.refusals.flush(services.database)
    columns = audit.c.action, audit.c.details["reason"].as_string()
    rows = await services.database.read(
        lambda connection: [tuple(row) for row in connection.execute(select(*columns))]
    )
    assert rows == [("refused", "credential refused")]


async def test_an_id_token_opens_no_endpoint_of_the_api(issuer, database, clock):
    token = rsa_key().sign(issuer.claims | {"iss": issuer.url, "aud": CLIENT, "nonce": "n"})
    async with open_for(issuer, database, clock, oidc_audience=CLIENT) as api:
        headers = {"Authorization": f"Bearer {token}"}
        assert (await api.client.get("/api/admin/api-keys", headers=headers)).status == 401
