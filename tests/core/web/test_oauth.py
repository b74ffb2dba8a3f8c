"""The OAuth 2.0 endpoints, by the tables of RFC 6749, 7009, 7662, 8414 and 9068."""

from __future__ import annotations

from base64 import b64encode
from urllib.parse import quote

import jwt
import pytest
from sqlalchemy import func, select

from api_server import URL, open_api, problem
from database_statements import noted_statements
from oauth_answers import FORM, GRANT, INTROSPECT, REVOKE, TOKEN, basic, oauth_error
from tocsin.credentials import (
    Scope,
    disable_api_client,
    generate_client_id,
    generate_client_secret,
    generate_key,
)
from tocsin.store.tables import api_clients, audit

JWKS = "/.well-known/jwks.json"
METADATA = "/.well-known/oauth-authorization-server"
INCIDENTS = "/api/v1/incidents"
SCOPES = (Scope.SEARCH_READ, Scope.INCIDENTS_READ)

on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@pytest.fixture
async def client(api) -> dict[str, str]:
    return await api.client_credentials(*SCOPES)


@pytest.fixture
def unknown() -> dict[str, str]:
    return {"client_id": generate_client_id(), "client_secret": generate_client_secret()}


async def disable(api, client: dict[str, str]) -> None:
    now = api.services.clock.now()
    await api.services.database.write(disable_api_client, client["client_id"], now)


async def call(api, token: str, path: str = INCIDENTS):
    return await api.client.get(path, headers={"Authorization": f"Bearer {token}"})


async def obtain(api, client: dict[str, str], **form: str) -> dict:
    response = await api.client.post(TOKEN, data={**GRANT, **client, **form})
    assert response.status == 200, await response.text()
    return await response.json()


# Obtaining a token


async def by_post(api, client, **form):
    return await api.client.post(TOKEN, data={**GRANT, **client, **form})


async def by_basic(api, client, **form):
    return await api.client.post(TOKEN, data={**GRANT, **form}, headers=basic(client))


async def by_both_naming_one_client(api, client, **form):
    named = {"client_id": client["client_id"], **GRANT, **form}
    return await api.client.post(TOKEN, data=named, headers=basic(client))


WAYS = (by_post, by_basic, by_both_naming_one_client)


@pytest.mark.parametrize("obtain_by", WAYS)
async def test_a_client_obtains_a_token_by_either_method(api, client, obtain_by):
    response = await obtain_by(api, client)
    assert response.status == 200
    assert response.content_type == "application/json"
    assert response.headers["Cache-Control"] == "no-store"
    assert response.headers["Pragma"] == "no-cache"
    answer = await response.json()
    token = answer.pop("access_token")
    assert answer == {
        "token_type": "Bearer",
        "expires_in": 1800,
        "scope": "incidents:read search:read",
    }
    assert (await call(api, token)).status == 200


@on_sqlite
@pytest.mark.parametrize("scheme", ["basic", "BASIC"])
async def test_the_scheme_is_written_in_any_case(api, client, scheme):
    header = basic(client)["Authorization"].replace("Basic", scheme)
    response = await api.client.post(TOKEN, data=GRANT, headers={"Authorization": header})
    assert response.status == 200


async def test_id_and_secret_may_be_percent_encoded_in_the_header(api, client):
    everything = {name: "".join(f"%{ord(c):02X}" for c in text) for name, text in client.items()}
    for encoded in (everything, {name: quote(text, safe="") for name, text in client.items()}):
        response = await api.client.post(TOKEN, data=GRANT, headers=basic(encoded))
        assert response.status == 200


async def test_parameters_that_are_empty_or_unknown_count_as_left_out(api, client):
    answer = await obtain(api, client, scope="", audience="", resource="https://elsewhere.example")
    assert answer["scope"] == "incidents:read search:read"
    form = {**GRANT, "client_id": "", "client_secret": ""}
    assert (await api.client.post(TOKEN, data=form, headers=basic(client))).status == 200


async def test_no_refresh_token_is_issued(api, client):
    assert "refresh_token" not in await obtain(api, client)


# The shape of a request, which is judged before its credentials

MANY = "&".join(f"field{number}=x" for number in range(30))
GOOD = "grant_type=client_credentials"
SHAPES = {
    "nothing": ("", "invalid_request", "grant_type is missing."),
    "no grant_type": ("scope=search:read", "invalid_request", "grant_type is missing."),
    "empty grant_type": ("grant_type=", "invalid_request", "grant_type is missing."),
    "grant_type twice": (f"{GOOD}&{GOOD}", "invalid_request", "more than once"),
    "scope twice": (f"{GOOD}&scope=a&scope=a", "invalid_request", "more than once"),
    "client_id twice": (f"{GOOD}&client_id=a&client_id=a", "invalid_request", "more than once"),
    "secret twice": (
        f"{GOOD}&client_secret=a&client_secret=b",
        "invalid_request",
        "more than once",
    ),
    "unknown twice": (f"{GOOD}&x=1&x=2", "invalid_request", "more than once"),
    "thirty parameters": (f"{GOOD}&{MANY}", "invalid_request", "not a UTF-8 form"),
    "not UTF-8": (f"{GOOD}&x=\xff".encode("latin-1"), "invalid_request", "not a UTF-8 form"),
    "not UTF-8, encoded": (f"{GOOD}&x=%FF", "invalid_request", "not a UTF-8 form"),
    "password": ("grant_type=password", "unsupported_grant_type", "client_credentials"),
    "code": ("grant_type=authorization_code", "unsupported_grant_type", "client_credentials"),
    "refresh": ("grant_type=refresh_token", "unsupported_grant_type", "client_credentials"),
    "assertion": (
        "grant_type=urn:ietf:params:oauth:grant-type:jwt-bearer",
        "unsupported_grant_type",
        "client_credentials",
    ),
    "other case": ("grant_type=Client_Credentials", "unsupported_grant_type", "client_credentials"),
    "scope with two spaces": (f"{GOOD}&scope=a++b", "invalid_scope", "single spaces"),
    "scope begins with a space": (f"{GOOD}&scope=+a", "invalid_scope", "single spaces"),
    "scope ends with a space": (f"{GOOD}&scope=a+", "invalid_scope", "single spaces"),
    "scope of a space": (f"{GOOD}&scope=+", "invalid_scope", "single spaces"),
    "scope with a quote": (f"{GOOD}&scope=%22a%22", "invalid_scope", "single spaces"),
    "scope with a backslash": (f"{GOOD}&scope=%5C", "invalid_scope", "single spaces"),
    "scope with a tab": (f"{GOOD}&scope=a%09b", "invalid_scope", "single spaces"),
    "scope with a line": (f"{GOOD}&scope=a%0A", "invalid_scope", "single spaces"),
    "scope beyond ASCII": (f"{GOOD}&scope=%C3%A9", "invalid_scope", "single spaces"),
}


@on_sqlite
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
async def test_the_shape_is_judged_before_the_credentials(api, client, unknown, shape):
    body, code, words = shape
    for sent in (client, unknown):
        headers = basic(sent) | {"Content-Type": FORM}
        with noted_statements(api.services.database) as statements:
            response = await api.client.post(TOKEN, data=body, headers=headers)
        assert words in await oauth_error(response, 400, code)
        assert statements == []
    assert api.services.hasher.runs == 0


async def test_parameters_in_the_url_are_refused(api, client):
    everything = {**GRANT, **client}
    for query, form in ((everything, {}), (client, GRANT), ({"scope": "graph:read"}, everything)):
        headers = {"Content-Type": FORM}
        response = await api.client.post(TOKEN, params=query, data=form, headers=headers)
        await oauth_error(response, 400, "invalid_request")
    assert api.services.hasher.runs == 0


@on_sqlite
@pytest.mark.parametrize("path", [TOKEN, INTROSPECT, REVOKE])
@pytest.mark.parametrize("content_type", ["application/json", "text/plain", "multipart/form-data"])
async def test_another_media_type_is_refused(api, client, path, content_type):
    headers = basic(client) | {"Content-Type": content_type}
    response = await api.client.post(path, data=GOOD + "&token=x", headers=headers)
    assert FORM in await oauth_error(response, 400, "invalid_request")


@on_sqlite
async def test_a_body_that_is_too_large_or_not_what_it_says_is_refused(api, client):
    headers = basic(client) | {"Content-Type": FORM}
    response = await api.client.post(TOKEN, data=b"x" * (64 * 1024 + 1), headers=headers)
    assert "exceeds" in await oauth_error(response, 413, "invalid_request")
    headers |= {"Content-Encoding": "gzip"}
    response = await api.client.post(TOKEN, data=GOOD, headers=headers)
    assert "length or encoding that the headers state" in await oauth_error(
        response, 400, "invalid_request"
    )


@on_sqlite
async def test_an_answer_that_nobody_can_give_is_refused_in_the_same_form(api, client):
    response = await api.client.post(
        TOKEN, data={**GRANT, **client}, headers={"Accept": "application/xml"}
    )
    await oauth_error(response, 400, "invalid_request")


# One set of credentials


@on_sqlite
@pytest.mark.parametrize("path", [TOKEN, INTROSPECT, REVOKE])
async def test_two_sets_of_credentials_are_one_too_many(api, client, unknown, path):
    form = {**GRANT, "token": "x"}
    both = await api.client.post(path, data={**form, **client}, headers=basic(client))
    await oauth_error(both, 400, "invalid_request")
    secret = {"client_secret": client["client_secret"]}
    both = await api.client.post(path, data={**form, **secret}, headers=basic(client))
    await oauth_error(both, 400, "invalid_request")
    twice = [*basic(client).items(), *basic(client).items()]
    await oauth_error(await api.client.post(path, data=form, headers=twice), 400, "invalid_request")
    other = {"client_id": unknown["client_id"]}
    both = await api.client.post(path, data={**form, **other}, headers=basic(client))
    assert "different client IDs" in await oauth_error(both, 400, "invalid_request")
    assert api.services.hasher.runs == 0


def encoded(pair: bytes) -> str:
    return b64encode(pair).decode()


SEND = "Send client_id and client_secret, in the header or in the body."
INVALID = "The client ID or secret is not valid."
MALFORMED = "The Authorization header is malformed."
NO_CREDENTIALS = {
    "none": ({}, {}, SEND),
    "an id alone": ({"client_id": generate_client_id()}, {}, SEND),
    "a secret alone": ({"client_secret": generate_client_secret()}, {}, SEND),
    "an empty secret": ({"client_id": generate_client_id(), "client_secret": ""}, {}, SEND),
    "another scheme": ({}, {"Authorization": "Bearer abc"}, "Use the Basic scheme"),
    "a scheme alone": ({}, {"Authorization": "Basic"}, SEND),
    "an empty header": ({}, {"Authorization": ""}, "Use the Basic scheme"),
    "not base64": ({}, {"Authorization": "Basic =YTpi"}, MALFORMED),
    "base64 of other letters": ({}, {"Authorization": "Basic YT_-"}, MALFORMED),
    "beyond ASCII": ({}, {"Authorization": "Basic é"}, MALFORMED),
    "not UTF-8": ({}, {"Authorization": "Basic " + encoded(b"a:\xff")}, MALFORMED),
    "no colon": ({}, {"Authorization": "Basic " + encoded(b"abc")}, SEND),
    "no id": ({}, {"Authorization": "Basic " + encoded(b":abc")}, SEND),
    "of no client": ({"client_id": "admin", "client_secret": "admin"}, {}, INVALID),
    "an API key": ({"client_id": "admin", "client_secret": generate_key()[1]}, {}, INVALID),
    "a typing error": (
        {"client_id": generate_client_id(), "client_secret": generate_client_secret()[:-1] + "!"},
        {},
        INVALID,
    ),
    "NUL": ({"client_id": "\0", "client_secret": "\0"}, {}, INVALID),
    "50 kB": ({"client_id": "a" * 25_000, "client_secret": "a" * 25_000}, {}, INVALID),
}


@on_sqlite
@pytest.mark.parametrize("path", [TOKEN, INTROSPECT, REVOKE])
@pytest.mark.parametrize(("form", "headers", "words"), NO_CREDENTIALS.values(), ids=NO_CREDENTIALS)
async def test_what_cannot_be_a_client_costs_neither_argon2_nor_a_read(
    api, path, form, headers, words
):
    with noted_statements(api.services.database) as statements:
        response = await api.client.post(
            path, data={**GRANT, "token": "x", **form}, headers=headers
        )
    assert words in await oauth_error(response, 401, "invalid_client")
    assert statements == []
    assert api.services.hasher.runs == 0


@pytest.mark.parametrize("path", [TOKEN, INTROSPECT, REVOKE])
async def test_unknown_wrong_and_malformed_are_answered_alike_to_the_byte(
    api, client, unknown, path
):
    await disable(api, disabled := await api.client_credentials(*SCOPES))
    secret = {"client_secret": generate_client_secret()}
    malformed = {"client_secret": secret["client_secret"][:-6] + "000000"}
    answers = []
    for sent in (unknown, client | secret, disabled | secret, client | malformed):
        response = await api.client.post(
            path, data={**GRANT, "token": "x", **sent}, headers={"X-Request-Id": "same"}
        )
        assert await oauth_error(response, 401, "invalid_client") == INVALID
        headers = {name: text for name, text in response.headers.items() if name != "Date"}
        answers.append((headers, await response.read()))
    assert answers == answers[:1] * 4
    assert api.services.hasher.runs == 2


@pytest.mark.parametrize("obtain_by", WAYS)
async def test_a_disabled_client_is_told_so_once_its_secret_is_verified(api, client, obtain_by):
    await disable(api, client)
    for _ in range(2):
        response = await obtain_by(api, client)
        words = await oauth_error(response, 401, "invalid_client")
        assert words == "The API client is disabled."
    assert api.services.hasher.runs == 1


async def test_many_requests_of_one_client_cost_one_argon2(api, client):
    for _ in range(5):
        await obtain(api, client)
    assert api.services.hasher.runs == 1


async def test_a_client_is_no_admin_and_its_token_neither(api, client):
    token = (await obtain(api, client))["access_token"]
    await problem(await call(api, token, "/api/admin/api-keys"), 403)
    await problem(await api.client.get("/api/admin/api-keys", headers=basic(client)), 401)


# Scopes

GRANTED = {
    "one": ("search:read", "search:read"),
    "both, in another order": ("search:read incidents:read", "incidents:read search:read"),
    "one, twice": ("search:read search:read", "search:read"),
}


@on_sqlite
@pytest.mark.parametrize(("wanted", "granted"), GRANTED.values(), ids=GRANTED)
async def test_a_scope_narrows_the_token(api, client, wanted, granted):
    answer = await obtain(api, client, scope=wanted)
    assert answer["scope"] == granted
    allowed = 200 if Scope.INCIDENTS_READ in granted else 403
    assert (await call(api, answer["access_token"])).status == allowed


NOT_GRANTED = {
    "exceeding": ("graph:read", "graph:read"),
    "partly exceeding": ("graph:read search:read", "graph:read"),
    "unknown": ("everything", "everything"),
    "several": ("openid incidents:delete search:read", "incidents:delete, openid"),
    "in another case": ("Search:Read", "Search:Read"),
}


@on_sqlite
@pytest.mark.parametrize(("wanted", "excess"), NOT_GRANTED.values(), ids=NOT_GRANTED)
async def test_scopes_that_the_client_does_not_have_are_named(api, client, wanted, excess):
    response = await by_post(api, client, scope=wanted)
    words = await oauth_error(response, 400, "invalid_scope")
    assert words == f"The client does not have these scopes: {excess}."


async def test_a_missing_scope_is_named_in_the_words_of_the_specification(api, client):
    token = (await obtain(api, client, scope="search:read"))["access_token"]
    document = await problem(await call(api, token), 403)
    assert document["detail"] == "API key does not have the required scope: incidents:read"


# The token itself


async def verify(api, token: str) -> dict:
    """Return header and claims, verified by the published keys as a stranger would."""
    published = jwt.PyJWKSet.from_dict(await (await api.client.get(JWKS)).json())
    key = published[jwt.get_unverified_header(token)["kid"]]
    times = {"verify_exp": False, "verify_iat": False}
    return jwt.decode_complete(
        token, key, algorithms=["RS256"], options={"verify_aud": False, **times}
    )


async def test_a_token_is_in_the_profile_of_rfc_9068(database, clock):
    clock.advance(milliseconds=700)
    async with open_api(database, clock, auth_url="https://auth.example/") as api:
        client = await api.client_credentials(*SCOPES)
        token = (await obtain(api, client))["access_token"]
        found = await verify(api, token)
    header, claims = found["header"], found["payload"]
    assert header.pop("kid")
    assert header == {"typ": "at+jwt", "alg": "RS256"}
    assert claims.pop("jti")
    issued_at = int(clock.now().timestamp())
    assert claims == {
        "iss": "https://auth.example",
        "sub": client["client_id"],
        "aud": URL,
        "client_id": client["client_id"],
        "scope": "incidents:read search:read",
        "iat": issued_at,
        "exp": issued_at + 1800,
    }


async def test_each_token_has_an_identifier_of_its_own(api, client):
    tokens = [(await obtain(api, client))["access_token"] for _ in range(3)]
    assert len({(await verify(api, token))["payload"]["jti"] for token in tokens}) == 3


@on_sqlite
@pytest.mark.parametrize("lifetime", [60, 1800])
async def test_a_token_lives_until_exactly_its_expiry(database, clock, lifetime):
    async with open_api(database, clock, access_token_seconds=lifetime) as api:
        answer = await obtain(api, await api.client_credentials(*SCOPES))
        assert answer["expires_in"] == lifetime
        clock.advance(seconds=lifetime, microseconds=-1)
        assert (await call(api, answer["access_token"])).status == 200
        clock.advance(microseconds=1)
        response = await call(api, answer["access_token"])
        document = await problem(response, 401)
        assert document["detail"] == "The bearer token has expired."
        assert 'error="invalid_token"' in response.headers["WWW-Authenticate"]


async def test_a_token_outlives_that_its_client_is_disabled(api, client, clock):
    token = (await obtain(api, client))["access_token"]
    await disable(api, client)
    clock.advance(minutes=29)
    assert (await call(api, token)).status == 200
    clock.advance(minutes=1)
    await problem(await call(api, token), 401)


# Introspection (RFC 7662)


async def introspect(api, client: dict[str, str], token: str) -> dict:
    response = await api.client.post(INTROSPECT, data={"token": token}, headers=basic(client))
    assert response.status == 200, await response.text()
    assert response.headers["Cache-Control"] == "no-store"
    return await response.json()


async def test_a_valid_token_is_described(api, client, clock):
    token = (await obtain(api, client))["access_token"]
    claims = (await verify(api, token))["payload"]
    clock.advance(minutes=1)
    described = await introspect(api, client, token)
    assert described == {"active": True, "token_type": "Bearer", **claims}


@pytest.fixture
async def worthless(api, client, clock) -> dict[str, str]:
    """Tokens that are not worth anything to the client, by why."""
    expired = (await obtain(api, client))["access_token"]
    clock.advance(minutes=30)
    revoked = (await obtain(api, client))["access_token"]
    await revoke(api, client, revoked)
    return {
        "expired": expired,
        "revoked": revoked,
        "of another": await api.access_token(*SCOPES),
        "of an admin": await api.token(),
        "an API key": await api.key(*SCOPES),
        "forged": revoked[:-6] + "AAAAAA",
        "none": "none",
        "beyond ASCII": "é",
        "NUL": "\0",
    }


async def test_a_token_that_is_not_valid_is_inactive_and_nothing_else(api, client, worthless):
    for token in worthless.values():
        assert await introspect(api, client, token) == {"active": False}


@pytest.mark.parametrize("path", [INTROSPECT, REVOKE])
async def test_whoever_asks_about_a_token_has_to_prove_who_they_are(api, client, unknown, path):
    token = (await obtain(api, client))["access_token"]
    await oauth_error(await api.client.post(path, data={"token": token}), 401, "invalid_client")
    for headers in (basic(unknown), {"Authorization": f"Bearer {token}"}):
        response = await api.client.post(path, data={"token": token}, headers=headers)
        await oauth_error(response, 401, "invalid_client")
    assert (await call(api, token)).status == 200


@on_sqlite
@pytest.mark.parametrize("path", [INTROSPECT, REVOKE])
async def test_a_token_is_named_once_and_its_hint_ignored(api, client, path):
    for form, words in (
        ("", "token is missing"),
        ("token=", "token is missing"),
        ("token=a&token=b", "more than once"),
    ):
        headers = basic(client) | {"Content-Type": FORM}
        response = await api.client.post(path, data=form, headers=headers)
        assert words in await oauth_error(response, 400, "invalid_request")
    form = {"token": "a", "token_type_hint": "refresh_token", **client}
    assert (await api.client.post(path, data=form)).status == 200


# Revocation (RFC 7009)


async def revoke(api, client: dict[str, str], token: str) -> None:
    response = await api.client.post(REVOKE, data={"token": token, **client})
    assert response.status == 200, await response.text()


async def test_a_revoked_token_is_void_at_once_and_no_other(api, client):
    first, second = [(await obtain(api, client))["access_token"] for _ in range(2)]
    for token in (first, second):
        assert (await call(api, token)).status == 200
    await revoke(api, client, first)
    document = await problem(await call(api, first), 401)
    assert document["detail"] == "The bearer token is not valid."
    assert (await call(api, second)).status == 200
    await revoke(api, client, first)


async def test_a_token_that_is_not_valid_counts_as_revoked(api, client, worthless):
    del worthless["of another"]
    for token in worthless.values():
        await revoke(api, client, token)


async def test_the_token_of_another_client_is_left_alone(api, client):
    token = await api.access_token(*SCOPES)
    response = await api.client.post(REVOKE, data={"token": token, **client})
    await oauth_error(response, 400, "invalid_grant")
    assert (await call(api, token)).status == 200


async def test_a_revoked_token_is_void_on_every_node(nodes):
    one, other = nodes
    client = await one.client_credentials(*SCOPES)
    token = (await obtain(one, client))["access_token"]
    assert (await call(other, token)).status == 200
    await revoke(one, client, token)
    await problem(await call(other, token), 401)
    assert await introspect(other, client, token) == {"active": False}


# What others have to know (RFC 8414, RFC 7517)


@pytest.mark.parametrize(
    ("settings", "issuer"),
    [({}, URL), ({"auth_url": "https://auth.example/tenant/"}, "https://auth.example/tenant")],
)
@on_sqlite
async def test_the_metadata_name_every_endpoint(database, clock, settings, issuer):
    async with open_api(database, clock, **settings) as api:
        response = await api.client.get(METADATA)
        metadata = await response.json()
    assert response.content_type == "application/json"
    assert response.headers["Cache-Control"] == "public, max-age=900"
    methods = ["client_secret_basic", "client_secret_post"]
    assert metadata == {
        "issuer": issuer,
        "token_endpoint": f"{issuer}/oauth/token",
        "jwks_uri": f"{issuer}/.well-known/jwks.json",
        "introspection_endpoint": f"{issuer}/oauth/introspect",
        "revocation_endpoint": f"{issuer}/oauth/revoke",
        "scopes_supported": sorted(Scope),
        "response_types_supported": [],
        "grant_types_supported": ["client_credentials"],
        "token_endpoint_auth_methods_supported": methods,
        "introspection_endpoint_auth_methods_supported": methods,
        "revocation_endpoint_auth_methods_supported": methods,
        "service_documentation": f"{URL}/docs",
    }


async def test_the_published_keys_hold_nothing_private(api):
    response = await api.client.get(JWKS)
    assert response.content_type == "application/json"
    assert response.headers["Cache-Control"] == "public, max-age=900"
    [key] = (await response.json())["keys"]
    assert set(key) == {"kty", "use", "alg", "kid", "n", "e"}
    assert (key["kty"], key["use"], key["alg"]) == ("RSA", "sig", "RS256")
    held = {"If-None-Match": response.headers["ETag"]}
    assert (await api.client.get(JWKS, headers=held)).status == 304


async def test_nobody_meets_a_new_key_before_they_could_have_read_it(api, client, clock):
    services = api.services
    old = (await (await api.client.get(JWKS)).json())["keys"]
    clock.advance(days=90, hours=-1)
    await services.database.write(services.access_tokens.prepare)
    before = (await obtain(api, client))["access_token"]
    published = (await (await api.client.get(JWKS)).json())["keys"]
    assert published[:1] == old
    assert len(published) == 2
    assert jwt.get_unverified_header(before)["kid"] == old[0]["kid"]
    clock.advance(hours=1)
    after = (await obtain(api, client))["access_token"]
    assert jwt.get_unverified_header(after)["kid"] == published[1]["kid"]
    assert (await call(api, after)).status == 200


async def test_when_every_key_is_replaced_every_token_ends(api, client):
    services = api.services
    known, fresh = [(await obtain(api, client))["access_token"] for _ in range(2)]
    assert (await call(api, known)).status == 200
    await services.database.write(services.access_tokens.replace_keys)
    for token in (known, fresh):
        document = await problem(await call(api, token), 401)
        assert document["detail"] == "The bearer token is not valid."
    token = (await obtain(api, client))["access_token"]
    assert (await call(api, token)).status == 200


# What is left behind


async def test_obtaining_a_token_is_noted_as_use_and_no_entry_of_the_audit(api, client, clock):
    await obtain(api, client)
    await api.door.usage.flush()
    used = select(api_clients.c.last_used_at)
    counted = select(func.count()).select_from(audit)
    [moment, count] = await api.services.database.read(
        lambda connection: [connection.scalars(query).one() for query in (used, counted)]
    )
    assert (moment, count) == (clock.now(), 0)


async def test_an_admin_ends_the_tokens_of_before_and_none_of_after(api, client, clock):
    token = (await obtain(api, client))["access_token"]
    assert (await call(api, token)).status == 200
    path = f"/api/admin/api-clients/{client['client_id']}/revoke-tokens"
    assert (await api.client.post(path, headers=await api.admin())).status == 200
    await problem(await call(api, token), 401)
    assert await introspect(api, client, token) == {"active": False}
    clock.advance(milliseconds=1)
    assert (await call(api, (await obtain(api, client))["access_token"])).status == 200


async def test_an_api_key_beside_client_credentials_is_one_too_many(api):
    form = {"grant_type": "client_credentials", **await api.client_credentials()}
    key = {"X-API-Key": await api.key(Scope.INCIDENTS_READ)}
    response = await api.client.post("/oauth/token", data=form, headers=key)
    assert await oauth_error(response, 400, "invalid_request")


async def test_parameters_in_the_url_are_named_as_what_is_wrong(api):
    response = await api.client.post(
        "/oauth/token?grant_type=client_credentials", data=await api.client_credentials()
    )
    assert "not in the URL" in await oauth_error(response, 400, "invalid_request")
