"""A token of the named issuer admits its bearer, and the role in it makes an admin."""

from __future__ import annotations

import asyncio
import hmac
import json
from datetime import timedelta

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st
from jwt.algorithms import OKPAlgorithm
from structlog.testing import capture_logs

from oidc_issuer import Issuer, Key, ec_key, ed25519_key, make_token, rsa_key
from tocsin.credentials import IssuerUnavailable, OidcAdmin, OidcIssuer
from tocsin.credentials.oidc_discovery import IssuerKeys, read_keys
from tocsin.credentials.oidc_tokens import find_roles
from tocsin.credentials.tokens import TokenError
from tocsin.hookspecs import HttpResponse
from tocsin.net import open_client

RSA, EC, ED = rsa_key(), ec_key(), ed25519_key()


@pytest.fixture
async def issuer():
    issuer = Issuer()
    issuer.keys = [RSA, EC, ED]
    await issuer.start()
    yield issuer
    issuer.open.set()
    await issuer.stop()


@pytest.fixture
async def http():
    client = open_client(allow_hosts=["127.0.0.1"])
    yield client
    await client.close()


@pytest.fixture
def make_oidc(issuer, http, clock):
    def make(http=http, **named) -> OidcIssuer:
        name = named.get("issuer", issuer.url)
        wanted = {"audience": "tocsin", "role_claim": "roles", "role": "admin"}
        return OidcIssuer(name, **wanted, keys=IssuerKeys(name, http, clock), clock=clock)

    return make


@pytest.fixture
def oidc(make_oidc) -> OidcIssuer:
    return make_oidc()


@pytest.fixture
def claims(issuer, clock):
    now = int(clock.now().timestamp())
    return {
        "iss": issuer.url,
        "aud": "tocsin",
        "sub": "ana",
        "iat": now,
        "exp": now + 3600,
        "roles": ["admin"],
    }


async def refused(oidc: OidcIssuer, token: str) -> TokenError:
    with pytest.raises(TokenError) as error:
        await oidc.verify(token)
    return error.value


# What is accepted


@pytest.mark.parametrize(
    "key",
    [
        RSA,
        rsa_key(algorithm="RS512"),
        rsa_key(algorithm="PS256"),
        EC,
        ec_key(algorithm="ES384"),
        ec_key(algorithm="ES512"),
        ED,
    ],
    ids=lambda key: key.algorithm,
)
async def test_a_token_names_its_admin(issuer, oidc, claims, key):
    issuer.keys = [key]
    token = key.sign(claims)
    assert oidc.is_issuer_of(token)
    assert await oidc.verify(token) == OidcAdmin("ana", is_admin=True, expires_at=0)


async def test_a_token_without_the_role_is_valid_and_its_bearer_no_admin(oidc, claims):
    token = RSA.sign(claims | {"roles": ["administrator"]})
    assert await oidc.verify(token) == OidcAdmin("ana", is_admin=False, expires_at=0)


@pytest.mark.parametrize("type_", [None, "JWT", "jwt", "at+jwt", "AT+JWT", "application/at+jwt"])
async def test_a_token_of_no_type_or_of_one_for_access_passes(oidc, claims, type_):
    assert (await oidc.verify(RSA.sign(claims, typ=type_))).is_admin


async def test_the_audience_may_be_one_of_several(oidc, claims):
    assert (await oidc.verify(RSA.sign(claims | {"aud": ["account", "tocsin"]}))).is_admin


async def test_clocks_may_differ_by_a_minute_at_the_beginning(oidc, claims):
    soon = claims["iat"] + 60
    assert (await oidc.verify(RSA.sign(claims | {"iat": soon, "nbf": soon}))).is_admin


async def test_a_key_without_an_identifier_serves_tokens_without_one(issuer, oidc, claims):
    issuer.keys = [ec_key(kid=None), RSA]
    assert (await oidc.verify(issuer.keys[0].sign(claims))).is_admin


async def test_a_token_without_an_identifier_is_refused_where_several_keys_fit(
    issuer, oidc, claims
):
    first = ec_key(kid=None)
    issuer.keys = [first, ec_key(kid=None)]
    await refused(oidc, first.sign(claims))


@pytest.mark.parametrize(
    "members", [{"use": None}, {"alg": "RS256"}, {"x5c": ["MIIC"], "issuer": "https://id.example"}]
)
async def test_issuers_may_say_more_or_less_of_a_key(issuer, oidc, claims, members):
    issuer.keys = [Key(RSA.private, "RS256", "rsa", members)]
    assert (await oidc.verify(RSA.sign(claims))).is_admin


async def test_a_slash_at_the_end_of_the_issuer_belongs_to_its_name(issuer, make_oidc, claims):
    issuer.path = "/tenant/"
    token = RSA.sign(claims | {"iss": issuer.url})
    assert (await make_oidc().verify(token)).is_admin
    assert not make_oidc(issuer=issuer.url.rstrip("/")).is_issuer_of(token)


# What is refused


def pem(key: Key) -> bytes:
    return key.private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def hs256(claims: dict, kid: str, secret: bytes) -> str:
    header = {"alg": "HS256", "kid": kid}
    body = json.dumps(claims).encode()
    return make_token(header, body, lambda signed: hmac.digest(secret, signed, "sha256"))


STRANGER = ec_key("ec")
ENCRYPTS = rsa_key("encrypts")
ENCRYPTS.members["use"] = "enc"
ONLY_PS512 = rsa_key("only-ps512")
ONLY_PS512.members["alg"] = "PS512"
PUBLISHED_WHOLE = ed25519_key("whole")
PUBLISHED_WHOLE.members |= OKPAlgorithm.to_jwk(PUBLISHED_WHOLE.private, as_dict=True)
SYMMETRIC = ed25519_key("oct")
SYMMETRIC.members |= {"kty": "oct", "k": "c2VjcmV0"}
ODD_KEYS = [ENCRYPTS, ONLY_PS512, PUBLISHED_WHOLE, SYMMETRIC]

BAD_TOKENS = {
    "nothing": lambda _: "",
    "no token": lambda _: "a.b.c",
    "not ascii": lambda c: RSA.sign(c) + "é",
    "beyond ascii": lambda c: RSA.sign(c) + "\udcff",
    "too long": lambda c: RSA.sign(c | {"padding": "x" * 8192}),
    "not an object": lambda _: RSA.sign([]),
    "header not an object": lambda c: make_token([], json.dumps(c).encode()),
    "deeply nested": lambda _: make_token({"alg": "RS256", "kid": "rsa"}, b"[" * 5000),
    "no signature": lambda c: RSA.sign(c).rpartition(".")[0] + ".",
    "another's signature": STRANGER.sign,
    "claims of another token": lambda c: ".".join(
        (RSA.sign(c).split(".")[0], RSA.sign(c | {"sub": "eve"}).split(".")[1], "AAAA")
    ),
    "alg none": lambda c: make_token({"alg": "none", "kid": "rsa"}, json.dumps(c).encode()),
    "alg absent": lambda c: RSA.sign(c, alg=None),
    "alg a list": lambda c: RSA.sign(c, alg=["RS256"]),
    "alg in another case": lambda c: RSA.sign(c, alg="rs256"),
    "HS256 with the public key": lambda c: hs256(c, "rsa", pem(RSA)),
    "HS256 with the published secret": lambda c: hs256(c, "oct", b"secret"),
    "another kind of key": lambda c: RSA.sign(c, kid="ec"),
    "another algorithm than the key's own": ONLY_PS512.sign,
    "a key for encryption": ENCRYPTS.sign,
    "a key whose private half is published": PUBLISHED_WHOLE.sign,
    "unknown kid": lambda c: RSA.sign(c, kid="other"),
    "kid a path": lambda c: RSA.sign(c, kid="../../dev/null"),
    "kid a number": lambda c: RSA.sign(c, kid=7),
    "jwk": lambda c: STRANGER.sign(c, kid=None, jwk=STRANGER.public),
    "jwk beside a kid": lambda c: STRANGER.sign(c, jwk=STRANGER.public),
    "jku": lambda c: STRANGER.sign(c, kid="evil", jku="http://127.0.0.1:9/keys"),
    "crit": lambda c: RSA.sign(c, crit=["urgent"], urgent=True),
    "crit that the library understands": lambda c: RSA.sign(c, crit=["b64"], b64=True),
    "logout token": lambda c: RSA.sign(c, typ="logout+jwt"),
    "logout token of an older kind": lambda c: RSA.sign(
        c | {"events": {"http://schemas.openid.net/event/backchannel-logout": {}}}
    ),
    "ID token by its nonce": lambda c: RSA.sign(c | {"nonce": "n"}),
    "ID token by its hash": lambda c: RSA.sign(c | {"at_hash": "MTIzNDU2Nzg5MDEyMzQ1Ng"}),
    "security event": lambda c: RSA.sign(c, typ="secevent+jwt"),
    "admin token": lambda c: RSA.sign(c, typ="tocsin-admin+jwt"),
    "type a number": lambda c: RSA.sign(c, typ=1),
    "wrong iss": lambda c: RSA.sign(c | {"iss": "https://evil.example"}),
    "iss with a slash": lambda c: RSA.sign(c | {"iss": c["iss"] + "/"}),
    "iss a list": lambda c: RSA.sign(c | {"iss": [c["iss"]]}),
    "wrong aud": lambda c: RSA.sign(c | {"aud": "account"}),
    "part of aud": lambda c: RSA.sign(c | {"aud": "tocsin-dev"}),
    "wrong auds": lambda c: RSA.sign(c | {"aud": ["account", "tocsin-dev"]}),
    "aud an object": lambda c: RSA.sign(c | {"aud": {"tocsin": True}}),
    "aud a list of anything": lambda c: RSA.sign(c | {"aud": ["tocsin", 1]}),
    "sub empty": lambda c: RSA.sign(c | {"sub": ""}),
    "sub too long": lambda c: RSA.sign(c | {"sub": "a" * 256}),
    "sub a number": lambda c: RSA.sign(c | {"sub": 7}),
    "sub that no database stores": lambda c: RSA.sign(c | {"sub": "a\0"}),
    "sub that nothing encodes": lambda c: RSA.sign(c | {"sub": "\ud800"}),
    "exp text": lambda c: RSA.sign(c | {"exp": str(c["exp"])}),
    "exp infinite": lambda c: RSA.sign(c | {"exp": float("inf")}),
    "exp not a number": lambda c: RSA.sign(c | {"exp": float("nan")}),
    "exp enormous": lambda c: RSA.sign(c | {"exp": 10**400}),
    "nbf later": lambda c: RSA.sign(c | {"nbf": c["iat"] + 61}),
    "nbf null": lambda c: RSA.sign(c | {"nbf": None}),
    "iat later": lambda c: RSA.sign(c | {"iat": c["iat"] + 61}),
    "iat text": lambda c: RSA.sign(c | {"iat": "now"}),
} | {
    f"no {name}": lambda c, name=name: RSA.sign({n: c[n] for n in c if n != name})
    for name in ("iss", "aud", "sub", "exp")
}


@pytest.mark.parametrize("name", BAD_TOKENS)
async def test_a_bad_token_is_refused(issuer, oidc, claims, name):
    issuer.keys += ODD_KEYS
    error = await refused(oidc, BAD_TOKENS[name](claims))
    assert not error.expired
    assert (await oidc.verify(RSA.sign(claims))).is_admin


async def test_the_odd_keys_are_as_published_and_only_that_keeps_them_out(issuer, oidc, claims):
    for key in ODD_KEYS:
        issuer.keys.append(Key(key.private, key.algorithm, f"plain-{key.kid}"))
    for key in issuer.keys[3:]:
        assert (await oidc.verify(key.sign(claims))).is_admin


async def test_that_a_token_expired_is_said_only_where_all_else_was_right(oidc, claims, clock):
    clock.advance(hours=1)
    assert (await refused(oidc, RSA.sign(claims))).expired
    assert not (await refused(oidc, STRANGER.sign(claims))).expired
    assert not (await refused(oidc, RSA.sign(claims | {"aud": "account"}))).expired


async def test_a_token_lives_to_the_second(oidc, claims, clock):
    clock.advance(minutes=59, seconds=59)
    assert (await oidc.verify(RSA.sign(claims))).is_admin


async def test_a_key_that_is_too_short_verifies_nothing(issuer, oidc, claims):
    weak = rsa_key("weak", bits=1024)
    issuer.keys = [weak]
    await refused(oidc, weak.sign(claims))


async def test_what_can_be_told_from_the_token_alone_makes_no_request(issuer, oidc, claims):
    for name in ("no token", "too long", "alg none", "crit", "logout token", "wrong iss"):
        await refused(oidc, BAD_TOKENS[name](claims))
    assert not issuer.fetches


@given(st.one_of(st.text(), st.from_regex(r"[\w-]{0,9}\.[\w-]{0,9}\.[\w-]{0,9}")))
def test_any_text_is_refused_without_a_request(text):
    oidc = OidcIssuer(
        "https://id.example", audience="a", role_claim="r", role="r", keys=None, clock=None
    )
    assert not oidc.is_issuer_of(text)
    asyncio.run(refused(oidc, text))


# Roles


@pytest.mark.parametrize(
    ("claim", "holder"),
    [
        ("roles", {"roles": ["user", "admin"]}),
        ("roles", {"roles": "admin"}),
        ("scope", {"scope": "user admin"}),
        ("realm_access.roles", {"realm_access": {"roles": ["admin"]}}),
        ("resource_access.tocsin.roles", {"resource_access": {"tocsin": {"roles": ["admin"]}}}),
        ("https://example.org/roles", {"https://example.org/roles": ["admin"]}),
        ("a.b", {"a.b": ["admin"], "a": {"b": []}}),
    ],
)
def test_a_role_is_found_where_issuers_put_it(claim, holder):
    assert "admin" in find_roles(holder, claim)


def test_a_role_with_a_space_may_stand_alone():
    assert "Global Admin" in find_roles({"role": "Global Admin"}, "role")


@pytest.mark.parametrize(
    "holder",
    [
        {},
        {"roles": None},
        {"roles": ["Admin", "administrator", ["admin"], {"admin": True}, None, 1]},
        {"roles": {"admin": True}},
        {"roles": "admin,user"},
        {"a": {"roles": ["admin"]}},
    ],
)
def test_a_role_is_found_nowhere_else(holder):
    assert "admin" not in find_roles(holder, "roles")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["a", "b", "c"]), inner),
)


@given(JSON, st.sampled_from(["a", "a.b", "a.b.c", "."]))
def test_roles_are_text_whatever_the_claims_are(value, claim):
    assert all(isinstance(role, str) for role in find_roles({"a": value}, claim))


# The keys


async def test_fresh_keys_are_fetched_once(issuer, oidc, claims, clock):
    for _ in range(3):
        await oidc.verify(RSA.sign(claims))
        clock.advance(minutes=4)
    assert issuer.fetches == {"discovery": 1, "keys": 1}


async def test_keys_are_fetched_anew_after_ten_minutes(issuer, oidc, claims, clock):
    await oidc.verify(RSA.sign(claims))
    issuer.keys.remove(RSA)
    clock.advance(minutes=9, seconds=59)
    await oidc.verify(RSA.sign(claims))
    clock.advance(seconds=1)
    await refused(oidc, RSA.sign(claims))
    assert issuer.fetches["keys"] == 2


async def test_a_new_key_is_found_at_its_first_use(issuer, oidc, claims):
    await oidc.verify(RSA.sign(claims))
    issuer.keys.append(new := ec_key("new"))
    assert (await oidc.verify(new.sign(claims))).is_admin
    assert issuer.fetches["keys"] == 2


async def test_an_unknown_key_is_looked_for_every_ten_seconds(issuer, oidc, claims, clock):
    await oidc.verify(RSA.sign(claims))
    for second in range(30):
        await refused(oidc, RSA.sign(claims, kid=f"unknown-{second}"))
        clock.advance(seconds=1)
    assert issuer.fetches["keys"] == 4


async def test_an_unknown_key_is_not_looked_for_twice_at_the_first_request(issuer, oidc, claims):
    await refused(oidc, RSA.sign(claims, kid="unknown"))
    assert issuer.fetches["keys"] == 1


async def test_fifty_callers_at_once_are_served_by_one_fetch(issuer, oidc, claims):
    admins = await asyncio.gather(*(oidc.verify(RSA.sign(claims)) for _ in range(50)))
    assert all(admin.is_admin for admin in admins)
    assert issuer.fetches == {"discovery": 1, "keys": 1}


async def test_fifty_callers_with_a_new_key_are_served_by_one_fetch(issuer, oidc, claims):
    await oidc.verify(RSA.sign(claims))
    issuer.keys.append(new := ec_key("new"))
    admins = await asyncio.gather(*(oidc.verify(new.sign(claims)) for _ in range(50)))
    assert all(admin.is_admin for admin in admins)
    assert issuer.fetches == {"discovery": 2, "keys": 2}


async def test_a_caller_who_goes_away_takes_nothing_from_the_others(issuer, oidc, claims):
    issuer.open.clear()
    first, second = (asyncio.create_task(oidc.verify(RSA.sign(claims))) for _ in range(2))
    await issuer.asked.wait()
    first.cancel()
    await asyncio.wait([first])
    issuer.open.set()
    assert (await second).is_admin
    assert first.cancelled()
    assert issuer.fetches == {"discovery": 1, "keys": 1}


async def test_known_keys_serve_while_a_fetch_for_an_unknown_one_is_under_way(issuer, oidc, claims):
    await oidc.verify(RSA.sign(claims))
    issuer.open.clear()
    issuer.asked.clear()
    waiting = asyncio.create_task(refused(oidc, RSA.sign(claims, kid="unknown")))
    await issuer.asked.wait()
    assert (await oidc.verify(RSA.sign(claims))).is_admin
    assert not waiting.done()
    issuer.open.set()
    await waiting


# The issuer away


async def test_old_keys_serve_for_a_day_while_the_issuer_is_away(issuer, oidc, claims, clock):
    token = RSA.sign(claims | {"exp": claims["exp"] + 100_000})
    await oidc.verify(token)
    await issuer.stop()
    clock.advance(hours=23, minutes=59)
    with capture_logs() as logs:
        assert (await oidc.verify(token)).is_admin
    assert logs[0]["event"] == "openid connect keys not refreshed"
    assert logs[0]["effect"] == "using cached keys"
    assert "cannot connect" in logs[0]["reason"]
    clock.advance(minutes=1)
    with pytest.raises(IssuerUnavailable):
        await oidc.verify(token)
    await issuer.start()
    clock.advance(seconds=10)
    assert (await oidc.verify(token)).is_admin


async def test_with_old_keys_a_failing_issuer_is_asked_once_a_minute(issuer, oidc, claims, clock):
    token = RSA.sign(claims)
    await oidc.verify(token)
    issuer.status = 503
    clock.advance(minutes=10)
    for _ in range(120):
        assert (await oidc.verify(token)).is_admin
        clock.advance(seconds=1)
    assert issuer.fetches == {"discovery": 3, "keys": 1}


async def test_without_keys_a_failing_issuer_is_asked_every_ten_seconds(
    issuer, oidc, claims, clock
):
    issuer.status = 503
    for _ in range(20):
        with pytest.raises(IssuerUnavailable):
            await oidc.verify(RSA.sign(claims))
        clock.advance(seconds=1)
    assert issuer.fetches == {"discovery": 2}
    issuer.status = 200
    assert (await oidc.verify(RSA.sign(claims))).is_admin


async def test_fifty_callers_at_once_are_refused_by_one_fetch(issuer, oidc, claims):
    issuer.status = 500
    outcomes = await asyncio.gather(
        *(oidc.verify(RSA.sign(claims)) for _ in range(50)), return_exceptions=True
    )
    assert {type(outcome) for outcome in outcomes} == {IssuerUnavailable}
    assert issuer.fetches == {"discovery": 1}


async def test_a_key_that_may_be_new_is_not_refused_while_the_issuer_is_away(
    issuer, oidc, claims, clock
):
    await oidc.verify(RSA.sign(claims))
    issuer.keys.append(new := ec_key("new"))
    issuer.status = 503
    for _ in range(20):
        with pytest.raises(IssuerUnavailable):
            await oidc.verify(new.sign(claims))
        assert (await oidc.verify(RSA.sign(claims))).is_admin
        clock.advance(seconds=1)
    assert issuer.fetches["discovery"] == 3
    issuer.status = 200
    assert (await oidc.verify(new.sign(claims))).is_admin
    await refused(oidc, RSA.sign(claims, kid="unknown"))


class Impatient:
    """The real client, for which time passes a hundred times faster."""

    def __init__(self, client) -> None:
        self._client = client

    async def request(self, *request, timeout: timedelta, **rest):
        return await self._client.request(*request, timeout=timeout / 100, **rest)


async def test_an_issuer_that_does_not_answer_is_waited_for_only_so_long(
    issuer, make_oidc, http, claims
):
    issuer.open.clear()
    with capture_logs() as logs, pytest.raises(IssuerUnavailable):
        await make_oidc(http=Impatient(http)).verify(RSA.sign(claims))
    assert "timeout" in logs[0]["reason"]


UNUSABLE = {
    "another issuer": {"discovery": {"issuer": "https://evil.example"}},
    "no issuer": {"discovery": {"issuer": None}},
    "no keys' address": {"discovery": {"jwks_uri": None}},
    "an address that is none": {"discovery": {"jwks_uri": "file:///etc/passwd"}},
    "an address that may not be reached": {"discovery": {"jwks_uri": "https://10.1.2.3/keys"}},
    "not found": {"status": 404},
    "no content": {"status": 204},
    "a redirect": {"status": 302},
    "not JSON": {"key_set": b"<html>"},
    "no object": {"key_set": b"[]"},
    "no list of keys": {"key_set": b'{"keys": {}}'},
    "deeply nested": {"key_set": b"[" * 100_000},
    "too long": {"key_set": b'{"keys": []}' + b" " * 256 * 1024},
}


@pytest.mark.parametrize("name", UNUSABLE)
async def test_an_unusable_answer_is_no_verdict_on_the_token(issuer, oidc, claims, name):
    for attribute, value in UNUSABLE[name].items():
        setattr(issuer, attribute, value)
    with capture_logs() as logs, pytest.raises(IssuerUnavailable):
        await oidc.verify(RSA.sign(claims))
    [warning] = [entry for entry in logs if entry["log_level"] != "debug"]
    assert (warning["log_level"], warning["issuer"]) == ("warning", issuer.url)


class Answers:
    """What a server behind TLS would answer, by URL."""

    def __init__(self, documents: dict[str, dict]) -> None:
        self._documents = documents

    async def request(self, method, url, **rest):
        body = json.dumps(self._documents.pop(url)).encode()
        return HttpResponse(status=200, headers={}, body=body, truncated=False)


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_keys_come_by_tls_where_the_issuer_does(make_oidc, claims, scheme):
    issuer = "https://id.example"
    keys = f"{scheme}://id.example/keys"
    documents = {
        f"{issuer}/.well-known/openid-configuration": {"issuer": issuer, "jwks_uri": keys},
        keys: {"keys": [RSA.public]},
    }
    verdict = make_oidc(issuer=issuer, http=Answers(documents)).verify(
        RSA.sign(claims | {"iss": issuer})
    )
    if scheme == "https":
        assert (await verdict).is_admin
    else:
        with pytest.raises(IssuerUnavailable):
            await verdict
    assert len(documents) == (scheme == "http")


async def test_keys_as_long_as_allowed_are_read(issuer, oidc, claims):
    published = json.dumps({"keys": [RSA.public]}).encode()
    issuer.key_set = published.ljust(256 * 1024)
    assert (await oidc.verify(RSA.sign(claims))).is_admin


async def test_an_issuer_that_withdraws_every_key_is_believed(issuer, oidc, claims, clock):
    await oidc.verify(RSA.sign(claims))
    issuer.keys = []
    clock.advance(minutes=10)
    await refused(oidc, RSA.sign(claims))


def _entries() -> st.SearchStrategy:
    names = ["kty", "crv", "kid", "use", "alg", "n", "e", "x", "y"]
    words = ["RSA", "EC", "OKP", "oct", "P-256", "Ed25519", "sig", "RS256", "HS256", "AQAB", ""]
    return st.dictionaries(st.sampled_from(names), st.sampled_from(words) | JSON)


@given(st.lists(JSON | _entries() | st.builds(lambda some: RSA.public | some, _entries())))
def test_entries_that_are_no_keys_are_passed_over(entries):
    known = [key for key in read_keys([*entries, ED.public]) if key.key_id == "ed"]
    assert known[-1].algorithms == {"EdDSA"}
