"""What is malformed, forged or not HTTP at all: how it is answered, and what that costs."""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import jwt
import pytest
from aiohttp import web
from cryptography.hazmat.primitives import serialization
from pydantic import BaseModel, ValidationError

from api_server import PUSHED, problem
from database_statements import noted_statements
from oidc_issuer import ed25519_key, make_token, rsa_key
from tocsin.credentials import Scope, generate_key
from tocsin.validation import explain_errors
from tocsin.web import ApiRunner, make_app
from tocsin.web.endpoints import ENDPOINTS
from tocsin.web.problems import ProblemDocument

INCIDENTS = "/api/v1/incidents"
KEYS = "/api/admin/api-keys"
_, KEY = generate_key()
INVALID = "The bearer token is not valid."
EVIL = "https://evil.example"

on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


# What is malformed is told so, at no cost

NO_KEY = (
    "The API key is malformed: its checksum does not match. Check for typos or missing characters."
)
NO_SCHEME = "Use the Bearer scheme in Authorization."
TWO = "Send exactly one credential, in either X-API-Key or Authorization."
MALFORMED = {
    "nothing": (
        [],
        401,
        "Send an API key in X-API-Key, or a bearer token; credentials in the URL are ignored.",
    ),
    "an empty key": ([("X-API-Key", "")], 401, NO_KEY),
    "a truncated key": ([("X-API-Key", KEY[:-1])], 401, NO_KEY),
    "a key and more": ([("X-API-Key", KEY + "0")], 401, NO_KEY),
    "a wrong checksum": ([("X-API-Key", KEY[:-6] + "000000")], 401, NO_KEY),
    "a typing error": ([("X-API-Key", KEY[:30] + "!" + KEY[31:])], 401, NO_KEY),
    "a quoted key": ([("X-API-Key", f'"{KEY}"')], 401, NO_KEY),
    "other digits": ([("X-API-Key", KEY[:-1] + "\N{ARABIC-INDIC DIGIT ONE}")], 401, NO_KEY),
    "unicode": ([("X-API-Key", "sk_live_ключ")], 401, NO_KEY),
    "8 kB of a key": ([("X-API-Key", "a" * 8_000)], 401, NO_KEY),
    "a key as basic": ([("Authorization", "Basic YTpi")], 401, NO_SCHEME),
    "a bare token": ([("Authorization", "a.b.c")], 401, NO_SCHEME),
    "an empty header": ([("Authorization", "")], 401, NO_SCHEME),
    "both": ([("X-API-Key", KEY), ("Authorization", "Bearer a.b.c")], 400, TWO),
    "both, malformed": ([("X-API-Key", ""), ("Authorization", "")], 400, TWO),
    "two keys": ([("X-API-Key", KEY), ("X-API-Key", KEY)], 400, TWO),
    "two tokens": ([("Authorization", "Bearer a"), ("Authorization", "Bearer a")], 400, TWO),
}


@on_sqlite
@pytest.mark.parametrize(("headers", "status", "words"), MALFORMED.values(), ids=MALFORMED)
async def test_what_is_malformed_is_told_so_at_no_cost(api, headers, status, words):
    for path in (INCIDENTS, KEYS):
        with noted_statements(api.services.database) as statements:
            response = await api.client.get(path, headers=headers)
        assert (await problem(response, status))["detail"] == words
        assert statements == []
    assert api.services.hasher.runs == 0


async def test_a_parameter_given_twice_is_named(api):
    response = await api.client.get(f"{INCIDENTS}?limit=1&limit=2", headers=await api.reader())
    [mistake] = (await problem(response, 422))["errors"]
    assert mistake == {"path": "limit", "detail": "given more than once; send it once"}


@on_sqlite
@pytest.mark.parametrize("form", ["{}", "{0}&{0}"])
async def test_a_query_of_many_parameters_is_refused_in_short(api, form):
    names = "&".join(form.format(f"n{number}") for number in range(600))
    response = await api.client.get(f"/healthz?{names}")
    document = await problem(response, 422)
    assert len(document["errors"]) == 1
    assert len(await response.read()) < 8_500  # with the path of the request


@on_sqlite
async def test_a_body_of_many_mistakes_is_refused_in_short(api):
    body = {f"member{number}": number for number in range(3_000)}
    response = await api.client.post(KEYS, json=body, headers=await api.admin())
    document = await problem(response, 422)
    assert len(document["errors"]) == 50
    assert document["detail"] == "50 errors or more in the body."


LONG_TYPES = {
    "parameters": ";a=1" * 1_900,
    "quoted parameters": ';a="b;"' * 1_000,
    "an open quote": ';a="' + ";" * 7_900,
    "nested comments": ";" + "(" * 7_900,
}


@on_sqlite
@pytest.mark.parametrize("parameters", LONG_TYPES.values(), ids=LONG_TYPES)
async def test_a_long_media_type_is_not_parsed(api, parameters):
    """Each took up to half a second of the event loop, without a credential."""
    for path, kind in {
        "/oauth/token": "application/x-www-form-urlencoded",
        "/sign-in": "application/x-www-form-urlencoded",
        f"/api/push/{PUSHED}": "application/json",
        KEYS: "application/json",
        "/nowhere": "text/plain",
    }.items():
        headers = {"Content-Type": kind + parameters}
        response = await api.client.post(path, data=b"a=b", headers=headers)
        assert response.status == 415, path


@on_sqlite
async def test_of_a_member_that_is_given_twice_the_last_counts(api):
    body = b'{"name": "first", "name": "last", "scopes": ["incidents:read"]}'
    headers = await api.admin() | {"Content-Type": "application/json"}
    made = await api.client.post(KEYS, data=body, headers=headers)
    assert (made.status, (await made.json())["name"]) == (201, "last")


@on_sqlite
@pytest.mark.parametrize(("fields", "status"), [(20, 401), (21, 400)])
async def test_a_form_has_few_fields(api, fields, status):
    client = {"grant_type": "client_credentials", "client_id": "a", "client_secret": "b"}
    form = client | {f"other{number}": "1" for number in range(fields - len(client))}
    assert (await api.client.post("/oauth/token", data=form)).status == status


# Tokens that admit nobody

AT = {"typ": "at+jwt", "alg": "RS256"}
ADMIN = {"typ": "tocsin-admin+jwt", "alg": "EdDSA"}
HEADERS = {
    "no type": {"alg": "RS256"},
    "another type": AT | {"typ": "JWT"},
    "a type that is no text": AT | {"typ": ["at+jwt"]},
    "no algorithm": {"typ": "at+jwt"},
    "alg none": AT | {"alg": "none"},
    "alg None": AT | {"alg": "None"},
    "an admin's, alg none": ADMIN | {"alg": "none"},
    "HS256": AT | {"alg": "HS256"},
    "an admin's, HS256": ADMIN | {"alg": "HS256"},
    "ES256": AT | {"alg": "ES256"},
    "the admins' algorithm": AT | {"alg": "EdDSA"},
    "the clients' algorithm": ADMIN | {"alg": "RS256"},
    "an algorithm that is no text": AT | {"alg": 1},
    "NUL as key": AT | {"kid": "\0"},
    "half a character as key": ADMIN | {"kid": "\ud800"},
    "a number as key": AT | {"kid": 7},
    "no object": ["at+jwt"],
}
MALFORMED_TOKENS = {
    "empty": "",
    "a word": "word",
    "an API key": KEY,
    "two parts": "a.b",
    "three parts": "a.b.c",
    "five parts": "a.b.c.d.e",
    "dots": "....",
    "not base64": "!.!.!",
    "with spaces": "a b.c.d",
    "unicode": "ключ.ключ.ключ",
    "8 kB": "a" * 8_000,
    "nested": make_token({"a": 1}, b"").replace("eyJhIjogMX0", "W1tb" * 1_500),
    **{name: make_token(header, b"{}") for name, header in HEADERS.items()},
}


@on_sqlite
@pytest.mark.parametrize("token", MALFORMED_TOKENS.values(), ids=MALFORMED_TOKENS)
async def test_a_token_that_cannot_be_one_costs_no_read(api, token):
    for path in (INCIDENTS, KEYS):
        with noted_statements(api.services.database) as statements:
            response = await api.client.get(path, headers=bearer(token))
        expected = (
            "This is an API key. Send it in the X-API-Key header." if token == KEY else INVALID
        )
        assert (await problem(response, 401))["detail"] == expected
        assert statements == []


@dataclass
class Forger:
    """Changes tokens, and signs them by the service's own keys where that is wanted."""

    api: object

    async def access(self, header: dict | None = None, /, **claims: object) -> str:
        return await self._sign(
            self.api.services.access_tokens, await self.api.access_token(*Scope), header, claims
        )

    async def admin(self, header: dict | None = None, /, **claims: object) -> str:
        return await self._sign(self.api.services.admins, await self.api.token(), header, claims)

    async def _sign(self, tokens, good: str, header, claims) -> str:
        services = self.api.services
        key = await services.database.read(tokens._keys.load_signing_key, services.clock.now())
        algorithm = jwt.get_algorithm_by_name(key.algorithm)
        body = jwt.decode(good, options={"verify_signature": False}) | claims
        body = {name: claim for name, claim in body.items() if claim is not None}
        return make_token(
            jwt.get_unverified_header(good) | (header or {}),
            json.dumps(body).encode(),
            lambda signed: algorithm.sign(signed, key.private_key),
        )

    async def public_pem(self) -> bytes:
        keys = await (await self.api.client.get("/.well-known/jwks.json")).json()
        key = jwt.PyJWKSet.from_dict(keys).keys[0].key
        return key.public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )


@pytest.fixture
def forger(api) -> Forger:
    return Forger(api)


async def by_the_public_key(forger: Forger) -> str:
    pem = await forger.public_pem()
    good = await forger.access()
    header = jwt.get_unverified_header(good) | {"alg": "HS256"}
    body = json.dumps(jwt.decode(good, options={"verify_signature": False})).encode()
    return make_token(header, body, lambda signed: hmac.digest(pem, signed, "sha256"))


async def with_another_body(forger: Forger) -> str:
    first, second = await forger.access(), await forger.access(scope="graph:read", sub="admin")
    return ".".join([*second.split(".")[:2], first.split(".")[2]])


async def with_a_key_of_its_own(forger: Forger) -> str:
    header = jwt.get_unverified_header(await forger.access())
    own = rsa_key()
    return make_token(
        header | {"jwk": own.public, "jku": EVIL, "x5u": EVIL},
        json.dumps(jwt.decode(await forger.access(), options={"verify_signature": False})).encode(),
        lambda signed: jwt.get_algorithm_by_name("RS256").sign(signed, own.private),
    )


async def as_admin_by_another_key(forger: Forger) -> str:
    good = await forger.admin()
    own = ed25519_key(jwt.get_unverified_header(good)["kid"])
    return own.sign(jwt.decode(good, options={"verify_signature": False}), typ="tocsin-admin+jwt")


FORGED = {
    "HS256 by the public key": by_the_public_key,
    "another body": with_another_body,
    "a key of its own": with_a_key_of_its_own,
    "an admin's by another key": as_admin_by_another_key,
    "another issuer": lambda forger: forger.access(iss=EVIL),
    "another audience": lambda forger: forger.access(aud=EVIL),
    "several audiences": lambda forger: forger.access(aud=["https://tocsin.example", EVIL]),
    "another type": lambda forger: forger.access({"typ": "JWT"}),
    "a critical header": lambda forger: forger.access({"crit": ["b64"], "b64": False}),
    "an unknown critical header": lambda forger: forger.access({"crit": ["x"], "x": 1}),
    "an unknown key": lambda forger: forger.access({"kid": "01ARZ3NDEKTSV4RRFFQ69G5FAV"}),
    "no expiry": lambda forger: forger.access(exp=None),
    "no identifier": lambda forger: forger.access(jti=None),
    "an unknown client": lambda forger: forger.access(client_id="cl_0123456789ABCDEF"),
    "expired and of another": lambda forger: forger.access(exp=1, iss=EVIL),
    "an admin's for another": lambda forger: forger.admin(aud=EVIL),
    "an admin's of another": lambda forger: forger.admin(iss=EVIL),
    "an admin's without the role": lambda forger: forger.admin(role="user"),
    "an admin's with a critical header": lambda forger: forger.admin({"crit": ["x"], "x": 1}),
}


async def test_what_the_forger_leaves_alone_is_valid(api, forger):
    assert (await api.client.get(INCIDENTS, headers=bearer(await forger.access()))).status == 200
    assert (await api.client.get(KEYS, headers=bearer(await forger.admin()))).status == 200


async def test_every_forged_token_is_answered_alike_to_the_byte(api, forger):
    tokens = [await forge(forger) for forge in FORGED.values()]
    for path in (INCIDENTS, KEYS):
        answers = [await answer_to(api, path, token) for token in ("malformed", *tokens)]
        told_apart = [
            name for name, answer in zip(FORGED, answers[1:], strict=True) if answer != answers[0]
        ]
        assert told_apart == []
        assert json.loads(answers[0][1])["detail"] == INVALID


async def answer_to(api, path: str, token: str) -> tuple[dict[str, str], bytes]:
    headers = bearer(token) | {"X-Request-Id": "same"}
    response = await api.client.get(path, headers=headers)
    await problem(response, 401)
    found = {name: text for name, text in response.headers.items() if name != "Date"}
    return found, await response.read()


async def test_that_a_token_expired_is_said_only_of_our_own(api, forger, clock):
    expired = {"iat": 1, "exp": 2}
    ours = await forger.access(**expired), await forger.admin(**expired)
    for path, token in zip((INCIDENTS, KEYS), ours, strict=True):
        found = json.loads((await answer_to(api, path, token))[1])
        assert found["detail"] == "The bearer token has expired."
        found = json.loads((await answer_to(api, path, token[:-6] + "AAAAAA"))[1])
        assert found["detail"] == INVALID


# What is not HTTP, or too large for it

SECRET = b"s3cret"
POST = b"POST /oauth/token HTTP/1.1\r\nHost: localhost\r\n"
GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n"
NOT_HTTP = {
    "words": (SECRET + b"\r\n\r\n", 400),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + SECRET, 400),
    "an unknown method": (b"S3CRET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    "another version": (b"GET / HTTP/9.9\r\nHost: localhost\r\nX: " + SECRET + b"\r\n\r\n", 400),
    "NUL in the path": (b"GET /" + SECRET + b"\0 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    "a path beyond ASCII": (b"GET /" + SECRET + b"\xff HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    "a URL that is none": (
        b"GET http://[" + SECRET + b"/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
        400,
    ),
    "a header without a colon": (GET + SECRET + b"\r\n\r\n", 400),
    "a header on two lines": (GET + b"X: a\r\n " + SECRET + b"\r\n\r\n", 400),
    "NUL in a header": (GET + b"X: " + SECRET + b"\0\r\n\r\n", 400),
    "two hosts": (GET + b"Host: " + SECRET + b"\r\n\r\n", 400),
    "no host": (b"GET / HTTP/1.1\r\nX: " + SECRET + b"\r\n\r\n", 400),
    "a length that is none": (POST + b"Content-Length: " + SECRET + b"\r\n\r\n", 400),
    "a length below zero": (POST + b"Content-Length: -1\r\n\r\n" + SECRET, 400),
    "a length with a sign": (POST + b"Content-Length: +6\r\n\r\n" + SECRET, 400),
    "two lengths": (POST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n" + SECRET, 400),
    "a length and chunks": (
        POST + b"Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n" + SECRET,
        400,
    ),
    "an unknown coding": (POST + b"Transfer-Encoding: " + SECRET + b"\r\n\r\n", 400),
    "a chunk that is none": (
        POST + b"Transfer-Encoding: chunked\r\n\r\n" + SECRET + b"\r\n\r\n",
        400,
    ),
    "a chunk size with a sign": (CHUNKED + b"\r\n+6\r\n" + SECRET + b"\r\n", 400),
    "a chunk size with a prefix": (CHUNKED + b"\r\n0x6\r\n" + SECRET + b"\r\n", 400),
    "a chunk size without end": (CHUNKED + b"\r\n" + b"f" * 17 + b"\r\n" + SECRET, 400),
    "a chunk that goes on": (CHUNKED + b"\r\n1\r\n" + SECRET + b"\r\n", 400),
    "chunks that are not the last coding": (
        POST + b"Transfer-Encoding: chunked, identity\r\n\r\n6\r\n" + SECRET,
        400,
    ),
    "chunks twice": (CHUNKED + b"Transfer-Encoding: chunked\r\n\r\n6\r\n" + SECRET, 400),
    "a space before a colon": (POST + b"Content-Length : 6\r\n\r\n" + SECRET, 400),
    "lines that end in LF alone": (GET.replace(b"\r", b"") + b"X: " + SECRET + b"\n\n", 400),
    "a path of 9 kB": (b"GET /" + SECRET * 1_500 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 414),
    "a query of 9 kB": (b"GET /?" + SECRET * 1_500 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 414),
    "a path of 1 MB": (b"GET /" + SECRET * 170_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 414),
    "a header of 9 kB": (GET + b"X-API-Key: " + SECRET * 1_500 + b"\r\n\r\n", 431),
    "a header of 1 MB": (GET + b"X-API-Key: " + SECRET * 170_000 + b"\r\n\r\n", 431),
    "a name of 9 kB": (GET + SECRET * 1_500 + b": x\r\n\r\n", 431),
    "a hundred headers": (GET + b"X: s3cret\r\n" * 100 + b"\r\n", 431),
    "an unknown expectation": (POST + b"Expect: s3cret\r\nContent-Length: 0\r\n\r\n", 417),
    "one where nothing is": (GET + b"Expect: s3cret\r\n\r\n", 417),
}


@pytest.fixture
async def speak(api):
    """Send bytes to the API as it is served, and return status, header and body of its answer."""
    runner = ApiRunner(make_app(api.services))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()

    async def speak(sent: bytes) -> tuple[int, dict[str, str], bytes]:
        reader, writer = await asyncio.open_connection(*runner.addresses[0])
        try:
            with suppress(ConnectionError):
                writer.write(sent)
                await writer.drain()
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = dict(line.split(": ", 1) for line in head[1:] if line)
            body = await reader.readexactly(int(headers.get("Content-Length", 0)))
            return int(head[0].split()[1]), headers, body
        finally:
            writer.close()

    yield speak
    await runner.cleanup()


@on_sqlite
@pytest.mark.parametrize(("sent", "status"), NOT_HTTP.values(), ids=NOT_HTTP)
async def test_what_is_not_http_is_a_problem_that_echoes_nothing(speak, sent, status):
    found, headers, body = await speak(sent)
    assert found == status
    assert headers["Content-Type"] == "application/problem+json"
    assert headers["X-Request-Id"].isalnum()
    assert (headers["Server"], headers["X-Content-Type-Options"]) == ("tocsin", "nosniff")
    document = json.loads(body)
    ProblemDocument.model_validate(document, strict=True)
    assert document["status"] == status
    assert SECRET not in f"{headers}".lower().encode() + body.lower()


LARGEST = {
    "URL": b"GET /healthz?" + b"a" * 7_980 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "field": b"GET /healthz?x HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 8_000 + b"\r\n\r\n",
    "header": b"GET /healthz?x HTTP/1.1\r\nHost: localhost\r\n" + b"X: a\r\n" * 63 + b"\r\n",
}


@on_sqlite
@pytest.mark.parametrize("sent", LARGEST.values(), ids=LARGEST)
async def test_what_is_within_the_bounds_is_read(speak, sent):
    assert (await speak(sent))[0] == 422


@on_sqlite
async def test_who_waits_for_it_is_told_to_continue(speak):
    sent = POST + b"Expect: 100-continue\r\nContent-Length: 0\r\n\r\n"
    assert (await speak(sent))[0] == 100


@on_sqlite
async def test_a_body_that_cannot_be_read_is_no_fault_to_log(speak, caplog):
    for credential in (b"", b"X-API-Key: x\r\n"):
        coded = b"Content-Encoding: gzip\r\nContent-Length: 6\r\n\r\n" + SECRET
        form = b"Content-Type: application/x-www-form-urlencoded\r\n"
        assert (await speak(POST + credential + form + coded))[0] == 400
        anonymous = b"POST /api/admin/api-keys HTTP/1.1\r\nHost: localhost\r\n" + credential
        assert (await speak(anonymous + coded))[0] == 401
    assert caplog.records == []


@on_sqlite
async def test_a_bug_beyond_every_handler_is_a_problem_too(api, speak):
    object.__setattr__(api.services, "refusals", None)
    status, headers, body = await speak(GET.replace(b"/ ", b"/api/v1/incidents ") + b"\r\n")
    assert (status, headers["Content-Type"]) == (500, "application/problem+json")
    assert "X-Request-Id" in json.loads(body)["detail"]


def list_patterned_members() -> Iterator[tuple[type[BaseModel], str]]:
    for model in {each: None for point in ENDPOINTS for each in (point.body, point.query) if each}:
        for name, schema in model.model_json_schema().get("properties", {}).items():
            if "pattern" in schema or "'pattern'" in str(schema.get("anyOf")):
                yield model, name


@pytest.mark.parametrize("wrong", ["\x00", "a\nb", "§ §"])
def test_no_message_shows_a_regular_expression(wrong):
    judged = 0
    for model, name in list_patterned_members():
        with pytest.raises(ValidationError) as caught:
            model.model_validate({name: wrong, "unknown": 1})
        for mistake in explain_errors(caught.value, model):
            judged += mistake.path == (name,)
            assert "pattern" not in mistake.words
            assert "^" not in mistake.words
    assert judged
