"""Who gets into the console, and for how long."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from console import Person
from tocsin.credentials import Admins, Vault
from tocsin.store.tables import audit, console_sessions


async def test_whoever_is_not_signed_in_is_led_to_the_sign_in_and_back(api):
    response = await api.client.get("/?x=1", allow_redirects=False)
    assert (response.status, response.headers["Location"]) == (303, "/sign-in?next=/?x%3D1")
    form = {"token": await api.token(), "next": "/?x=1"}
    response = await api.client.post("/sign-in", data=form, allow_redirects=False)
    assert (response.status, response.headers["Location"]) == (303, "/?x=1")


@pytest.mark.parametrize(
    "place", ["https://evil.example", "//evil.example", "/\\evil.example", "x"]
)
async def test_the_sign_in_leads_nowhere_else(api, place):
    form = {"token": await api.token(), "next": place}
    response = await api.client.post("/sign-in", data=form, allow_redirects=False)
    assert response.headers["Location"] == "/"


async def test_what_is_no_admin_token_begins_nothing(api):
    for token in ("nonsense", "", await api.key(), await api.access_token()):
        response = await api.client.post("/sign-in", data={"token": token, "next": "/"})
        assert response.status == 401
        assert "Set-Cookie" not in response.headers
    assert await api.services.database.read(count_sessions) == 0


async def test_the_cookie_is_out_of_reach(api):
    form = {"token": await api.token(), "next": "/"}
    response = await api.client.post("/sign-in", data=form, allow_redirects=False)
    cookie = response.headers["Set-Cookie"]
    # the address of these tests begins with https://
    assert cookie.startswith("__Host-tocsin=")
    for part in ("HttpOnly", "Secure", "SameSite=Lax", "Path=/"):
        assert part in cookie
    stored = await api.services.database.read(read_digest)
    assert cookie.partition("=")[2].partition(";")[0] not in stored


async def test_a_session_ends_when_its_token_does(person, clock):
    await person.sign_in(minutes=10)
    await person.html("/")
    clock.advance(minutes=10)
    assert (await person.get("/", allow_redirects=False)).status == 303


async def test_a_session_lasts_for_half_a_day_at_most(person, clock):
    await person.sign_in(days=30)
    clock.advance(hours=12)
    assert (await person.get("/", allow_redirects=False)).status == 303


async def test_signing_out_ends_the_session_for_whoever_has_its_cookie(person):
    assert "Sign in" in await person.submit("/", "/sign-out")
    assert (await person.get("/", allow_redirects=False)).status == 303


async def test_signing_in_again_ends_the_session_of_before(api, person):
    before = Person(api, person.cookie)
    form = {"token": await api.token(), "next": "/"}
    response = await person.post("/sign-in", **form)
    assert response.status == 303
    assert (await before.get("/", allow_redirects=False)).status == 303
    assert await api.services.database.read(count_sessions) == 1


async def test_revoking_every_admin_token_ends_the_sessions(api, person):
    admins = Admins(Vault("A" * 43 + "=", source="test"), api.services.clock)
    await api.services.database.write(admins.revoke_all)
    assert (await person.get("/", allow_redirects=False)).status == 303


async def test_a_sign_in_stands_in_the_audit_log(api, person):
    actions = await api.services.database.read(
        lambda c: list(c.execute(select(audit.c.action, audit.c.actor)))
    )
    assert ("console.sign-in", "admin:ana") in [tuple(row) for row in actions]


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
async def test_another_site_signs_nobody_in(api, site):
    form = {"token": await api.token(), "next": "/"}
    response = await api.client.post("/sign-in", data=form, headers={"Sec-Fetch-Site": site})
    assert response.status == 403
    assert await api.services.database.read(count_sessions) == 0


async def test_a_form_without_the_sessions_own_token_does_nothing(person):
    for form in ({}, {"form_token": "0" * 64}, {"form_token": "ä"}):
        assert (await person.post("/sign-out", **form)).status == 403
    await person.html("/")


async def test_text_that_is_sent_after_the_session_has_ended_is_shown_again(api):
    text = {"text": "<b>asked</b> the owner"}
    headers = {"Sec-Fetch-Site": "same-origin"}
    response = await api.client.post("/incidents/1/comment", data=text, headers=headers)
    html = await response.text()
    assert response.status == 401
    assert "&lt;b&gt;asked&lt;/b&gt; the owner</textarea>" in html
    assert 'href="/sign-in?next=/incidents/1"' in html
    for headers in ({}, {"Sec-Fetch-Site": "cross-site"}):
        response = await api.client.post("/incidents/1/comment", data=text, headers=headers)
        assert "the owner" not in await response.text()


async def test_the_cookie_opens_no_endpoint_of_the_api(person):
    assert (await person.get("/api/admin/api-keys")).status == 401


async def test_nothing_of_a_page_can_run_or_load_from_elsewhere(person):
    response = await person.get("/")
    policy = response.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert response.headers["Cache-Control"] == "no-store"


def count_sessions(connection) -> int:
    return len(connection.execute(select(console_sessions)).all())


def read_digest(connection) -> str:
    return connection.scalars(select(console_sessions.c.digest)).one()
