"""API keys, API clients, plugins and the audit log, as an admin sees them."""

from __future__ import annotations

import re
from html import unescape

import pytest

from api_callers import Admin, admitted, obtain_token, token_admitted
from tocsin.credentials import Scope

KEYS, CLIENTS = "/admin/api-keys", "/admin/api-clients"
PLUGINS, AUDIT = "/admin/plugins", "/admin/audit"
HOSTILE = "<script>alert('1')</script> {{ 7*7 }} \"x\""
_SHOWN = re.compile(r'<code id="value">([^<]+)</code>')
_FORM = re.compile(r'name="form_token" value="([0-9a-f]{64})"')

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


async def sent(person, page: str, **fields: str) -> str:
    """Return the page that answers a form as it is sent, which tells what is shown once."""
    token = _FORM.search(await person.html(page))
    response = await person.post(page, form_token=token[1], **fields)
    assert response.status == 200, await response.text()
    assert response.headers["Cache-Control"] == "no-store"
    return await response.text()


async def key_page(api) -> str:
    """Return the path of the page of a key that may read incidents."""
    key = await Admin(api, await api.admin()).create_key(name=HOSTILE)
    return f"{KEYS}/{key['key_id']}"


async def client_page(api, **body: object) -> tuple[str, dict]:
    client = await Admin(api, await api.admin()).create_client(**body)
    return f"{CLIENTS}/{client['client_id']}", client


# Who may


@pytest.mark.parametrize("path", [KEYS, CLIENTS, PLUGINS, f"{PLUGINS}/webhook", AUDIT])
async def test_viewers_see_nothing_of_the_administration(viewer, path):
    assert "role, but you have the viewer role." in await viewer.text(path, 403)
    assert "Administration" not in await viewer.text("/")


async def test_viewers_change_nothing(api, viewer):
    [token] = set(_FORM.findall(await viewer.html("/")))
    page = await key_page(api)
    for path in (KEYS, page, f"{page}/disable", CLIENTS):
        response = await viewer.post(path, form_token=token, name="x", scopes="incidents:read")
        assert response.status == 403


@pytest.mark.parametrize("path", [f"{KEYS}/nothing", f"{CLIENTS}/cl_x", f"{PLUGINS}/nothing"])
async def test_what_is_not_there_is_said_so(person, path):
    assert "There is no" in await person.text(path, 404)


async def test_an_old_session_creates_no_credentials(api, person, clock):
    key, (client, _) = await key_page(api), await client_page(api)
    [token] = set(_FORM.findall(await person.html("/")))
    clock.advance(minutes=15, seconds=1)
    for page in (KEYS, key, CLIENTS, client):
        html = await person.html(page)
        assert "sign out and sign in again" in html
        assert f'method="post" action="{page}"' not in html
        response = await person.post(page, form_token=token, name="x", scopes="incidents:read")
        assert (response.status, "sign in again" in await response.text()) == (403, True), page
    assert "API key disabled" in await person.submit(key, f"{key}/disable")
    assert "API client disabled" in await person.submit(client, f"{client}/disable")


# API keys


async def test_without_keys_it_is_said_what_they_are_for(person):
    assert "No API keys yet" in await person.text(KEYS)
    assert "No API keys match this search" in await person.text(f"{KEYS}?search=x")


async def test_a_new_key_is_shown_once_and_opens_what_its_scopes_say(api, person):
    html = await sent(person, KEYS, name="soar", scopes="incidents:read", expires_in_days="30")
    assert "You cannot view it again" in html
    value = _SHOWN.search(html)[1]
    assert await admitted(api, value)
    listed = await person.html(KEYS)
    assert "soar" in listed
    assert value not in listed


async def test_what_each_scope_permits_stands_beside_it(person):
    text = await person.text(KEYS)
    for scope in Scope:
        assert scope in text
    assert "List and view synced incidents" in text


async def test_a_wrong_form_keeps_what_was_written(person):
    html = await person.html(KEYS)
    fields = {"name": "so'ar", "description": HOSTILE, "expires_in_days": "9999"}
    token = _FORM.search(html)[1]
    response = await person.post(KEYS, form_token=token, scopes="graph:read", **fields)
    html = await response.text()
    assert response.status == 422
    assert "expires_in_days" in html
    assert 'value="graph:read" checked' in html
    assert "so&#39;ar" in html
    assert "<script>alert" not in html
    text = await person.submit(KEYS, KEYS, 422, name="x", expires_in_days="soon")
    assert "scopes" in text
    assert "expires_in_days" in text


async def test_hostile_names_are_text(api, person):
    await key_page(api)
    html = await person.html(KEYS)
    assert "<script>alert" not in html
    assert "{{ 7*7 }}" in html


async def test_a_key_is_rotated_with_the_grace_that_was_asked_for(api, person):
    page = await key_page(api)
    html = await sent(person, page, grace_period_days="3", expires_in_days="")
    assert "The previous value stays valid until" in html
    assert await admitted(api, _SHOWN.search(html)[1])
    html = await sent(person, page, grace_period_days="0", expires_in_days="90")
    assert "no longer works" in html
    wrong = await person.submit(page, page, 422, grace_period_days="-1")
    assert "grace_period_days" in wrong


async def test_a_disabled_key_is_refused_and_offers_nothing(api, person):
    key = await Admin(api, await api.admin()).create_key(name="soar")
    page = f"{KEYS}/{key['key_id']}"
    text = await person.submit(page, f"{page}/disable")
    assert "Tocsin rejects requests with this key" in text
    assert "disabled" in text
    assert "Rotate" not in text
    assert not await admitted(api, key["api_key"])


async def test_an_expired_key_cannot_be_rotated(api, person, clock):
    key = await Admin(api, await api.admin()).create_key(expires_in_days=1)
    clock.advance(days=1)
    await person.sign_in()
    text = await person.text(f"{KEYS}/{key['key_id']}")
    assert "Create a new key" in text
    assert "Rotate key" not in text


async def test_keys_are_paged(api, person):
    for _ in range(51):
        await api.key(Scope.GRAPH_READ)
    html = await person.html(f"{KEYS}?search=graph")
    older = re.search(r'href="(/admin/api-keys\?search=graph&amp;cursor=[^"]+)"', html)[1]
    links = re.compile(r'<th scope="row"><a href="(/admin/api-keys/\w+)"')
    first, rest = links.findall(html), links.findall(await person.html(unescape(older)))
    assert (len(first), len(rest)) == (50, 1)
    assert rest[0] not in first


# API clients


async def test_a_new_client_is_shown_with_its_secret_and_obtains_tokens(api, person):
    html = await sent(person, CLIENTS, name="xsoar", scopes="incidents:read")
    secret = _SHOWN.search(html)[1]
    [client_id] = re.findall(r"<code>(cl_\w+)</code>", html)
    token = await obtain_token(api, {"client_id": client_id, "client_secret": secret})
    assert await token_admitted(api, token)
    assert secret not in await person.html(CLIENTS)


async def test_a_clients_secret_is_replaced(api, person):
    page, client = await client_page(api)
    html = await sent(person, page)
    secret = _SHOWN.search(html)[1]
    assert secret != client["client_secret"]
    assert await obtain_token(api, client | {"client_secret": secret})


async def test_a_clients_tokens_are_revoked(api, person):
    page, client = await client_page(api)
    token = await obtain_token(api, client)
    assert "were revoked" in await person.submit(page, f"{page}/revoke-tokens")
    assert not await token_admitted(api, token)


async def test_a_disabled_client_offers_only_to_revoke(api, person):
    page, _ = await client_page(api, name=HOSTILE)
    text = await person.submit(page, f"{page}/disable")
    assert "The client can no longer get access tokens" in text
    assert "Generate new secret" not in text
    assert "Revoke all tokens" in text
    assert "<script>alert" not in await person.html(page)


# Plugins


async def test_plugins_are_told_apart_by_whether_they_are_enabled(person):
    text = await person.text(PLUGINS)
    enabled, _, others = text.partition("Installed but not enabled")
    assert "webhook loaded destinations" in enabled
    assert "suricata" in others


async def test_a_plugin_tells_its_settings(person):
    text = await person.text(f"{PLUGINS}/webhook")
    assert "Posts each event as a signed request" in text
    assert "secret_url secret" in text
    assert "Settings common to all destinations" in text


async def test_a_plugin_that_is_not_enabled_says_how(person):
    text = await person.text(f"{PLUGINS}/suricata")
    assert 'to enable it, set enabled = ["webhook", "suricata"] in plugins.toml, and then' in text


# The audit log


async def test_what_was_done_can_be_read_and_narrowed(api, person):
    page = await key_page(api)
    html = await person.html(AUDIT)
    assert "api-key.create" in html
    assert f'href="{page}"' in html
    assert "&lt;script&gt;alert" in html
    assert "<script>alert" not in html
    assert "console.sign-in" in await person.text(f"{AUDIT}?action=console.sign-in")
    assert "No entries match these filters" in await person.text(f"{AUDIT}?actor=admin:ben")


async def test_moments_are_taken_as_utc_and_stay_in_their_fields(person, clock):
    html = await person.html(f"{AUDIT}?since=2026-11-21T12:00&until=2026-11-21T12:00:01")
    assert 'name="since" value="2026-11-21T12:00:00" data-utc>' in html
    assert "console.sign-in" in html
    assert "No entries match" in await person.text(f"{AUDIT}?until=2026-11-21T12:00:00")


async def test_wrong_filters_are_named(person):
    assert "since" in await person.text(f"{AUDIT}?since=yesterday", 422)


async def test_a_count_of_refusals_stands_for_nobody(api, person):
    for _ in range(3):
        await api.client.get("/api/v1/incidents")
    await api.services.refusals.flush(api.services.database)
    text = await person.text(f"{AUDIT}?action=refused")
    assert "unauthenticated" in text
    assert "3 times" in text
    assert "reason credential refused" in text
