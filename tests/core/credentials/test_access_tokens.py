"""Access tokens: what is signed with which key, and what ends them."""

from __future__ import annotations

from datetime import timedelta

import jwt
import pytest
from cryptography.fernet import Fernet
from sqlalchemy import func, select
from ulid import ULID

from oidc_issuer import make_token
from tocsin.credentials import (
    AccessTokens,
    ApiClient,
    Scope,
    TokenError,
    Vault,
    create_api_client,
    revoke_token,
    revoke_tokens,
)
from tocsin.credentials.signing_keys import LEAD, SIGNING_LIFE
from tocsin.store.tables import revoked_tokens

CLIENT = "cl_0123456789ABCDEF"
ISSUER, AUDIENCE = "https://auth.example", "https://tocsin.example"
LIFETIME = timedelta(minutes=30)
SCOPES = (Scope.INCIDENTS_READ, Scope.SEARCH_READ)

on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@pytest.fixture
def vault() -> Vault:
    return Vault(Fernet.generate_key().decode(), source="test")


@pytest.fixture
async def client(database, clock) -> ApiClient:
    client = ApiClient(
        id=str(ULID()),
        client_id=CLIENT,
        name="soar",
        description="",
        scopes=SCOPES,
        secret_hash="",
        created_by="ana",
        created_at=clock.now(),
        updated_at=clock.now(),
    )
    await database.write(create_api_client, client)
    return client


def make(vault, clock, **other: object) -> AccessTokens:
    wanted = {"issuer": ISSUER, "audience": AUDIENCE, "lifetime": LIFETIME} | other
    return AccessTokens(vault, clock, **wanted)


@pytest.fixture
async def tokens(database, vault, clock, client) -> AccessTokens:
    tokens = make(vault, clock)
    await database.write(tokens.prepare)
    return tokens


async def issue(database, tokens) -> str:
    return await database.write(tokens.issue, CLIENT, SCOPES)


async def is_refused(database, tokens, token: str) -> TokenError:
    with pytest.raises(TokenError) as caught:
        await database.read(tokens.verify, token)
    return caught.value


async def count(database, table) -> int:
    query = select(func.count()).select_from(table)
    return await database.read(lambda connection: connection.scalars(query).one())


async def test_a_verified_token_says_what_was_issued(database, tokens, clock):
    clock.advance(milliseconds=250)
    now = clock.now()
    token = await database.read(tokens.verify, await issue(database, tokens))
    assert (token.client_id, token.scopes) == (CLIENT, SCOPES)
    assert token.issued_at == now.replace(microsecond=0)
    assert token.expires_at == now.replace(microsecond=0) + LIFETIME


async def test_a_token_holds_on_every_node_and_after_a_restart(database, tokens, vault, clock):
    token = await issue(database, tokens)
    other = make(vault, clock)
    assert not other.is_known(token)
    await database.read(other.verify, token)
    assert other.is_known(token)


async def test_an_expired_token_is_told_from_a_forged_one(database, tokens, clock):
    token = await issue(database, tokens)
    clock.advance(minutes=30)
    assert (await is_refused(database, tokens, token)).expired
    assert not (await is_refused(database, tokens, token[:-6] + "AAAAAA")).expired
    assert not tokens.is_known(token[:-6] + "AAAAAA")


OTHERS = {
    "another issuer": {"issuer": "https://evil.example"},
    "an issuer that begins alike": {"issuer": ISSUER + "/"},
    "another audience": {"audience": "https://other.example"},
}


@on_sqlite
@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
async def test_a_token_for_another_service_is_refused(database, tokens, vault, clock, other):
    token = await issue(database, make(vault, clock, **other))
    assert not (await is_refused(database, tokens, token)).expired


async def sign(database, tokens, clock, header: dict, claims: object) -> str:
    """Return a token by the service's own key, with what it would never sign."""
    key = await database.read(tokens._keys.load_signing_key, clock.now())
    header = {"typ": "at+jwt", "alg": "RS256", "kid": key.id} | header
    algorithm = jwt.get_algorithm_by_name("RS256")
    body = jwt.api_jwt.json.dumps(claims).encode()
    return make_token(header, body, lambda signed: algorithm.sign(signed, key.private_key))


HEADERS = {
    "no type": {"typ": None},
    "another type": {"typ": "JWT"},
    "the admins' type": {"typ": "tocsin-admin+jwt"},
    "alg none": {"alg": "none"},
    "another algorithm": {"alg": "RS512"},
    "critical": {"crit": ["exp"], "exp": 1},
    "critical, unknown": {"crit": ["x"], "x": 1},
    "no key": {"kid": None},
    "an unknown key": {"kid": "01ARZ3NDEKTSV4RRFFQ69G5FAV"},
    "a key of another type": {"kid": 1},
    "NUL as key": {"kid": "\0"},
    "half a character as key": {"kid": "\ud800"},
    "a path as key": {"kid": "../../etc/passwd"},
    "SQL as key": {"kid": "' OR '1'='1"},
}


@pytest.mark.parametrize("header", HEADERS.values(), ids=HEADERS)
async def test_a_header_that_is_not_ours_is_refused(database, tokens, clock, header):
    claims = jwt.decode(await issue(database, tokens), options={"verify_signature": False})
    good = await sign(database, tokens, clock, {}, claims)
    await database.read(tokens.verify, good)
    await is_refused(database, tokens, await sign(database, tokens, clock, header, claims))


@on_sqlite
@pytest.mark.parametrize(
    "missing", ["iss", "aud", "sub", "client_id", "scope", "iat", "exp", "jti"]
)
async def test_every_claim_is_required(database, tokens, clock, missing):
    claims = jwt.decode(await issue(database, tokens), options={"verify_signature": False})
    del claims[missing]
    await is_refused(database, tokens, await sign(database, tokens, clock, {}, claims))


async def test_an_audience_among_others_is_none_of_ours(database, tokens, clock):
    claims = jwt.decode(await issue(database, tokens), options={"verify_signature": False})
    claims["aud"] = [AUDIENCE, "https://other.example"]
    await is_refused(database, tokens, await sign(database, tokens, clock, {}, claims))


async def test_a_revoked_token_ends_and_is_forgotten_when_it_has_expired(database, tokens, clock):
    text = await issue(database, tokens)
    token = await database.read(tokens.verify, text)
    for _ in range(2):
        await database.write(revoke_token, token)
    assert not (await is_refused(database, tokens, text)).expired
    clock.advance(minutes=30, seconds=-1)
    await database.write(tokens.prepare)
    assert await count(database, revoked_tokens) == 1
    clock.advance(seconds=1)
    await database.write(tokens.prepare)
    assert await count(database, revoked_tokens) == 0


async def test_tokens_of_the_moment_of_revocation_end_and_later_ones_do_not(
    database, tokens, clock
):
    earlier = await issue(database, tokens)
    clock.advance(seconds=1)
    same = await issue(database, tokens)
    await database.write(revoke_tokens, CLIENT, clock.now())
    clock.advance(milliseconds=1)
    later = await issue(database, tokens)
    for token in (earlier, same):
        await is_refused(database, tokens, token)
    await database.read(tokens.verify, later)


async def test_the_last_token_of_a_key_lives_as_long_as_any(database, tokens, vault, clock):
    clock.advance(seconds=(SIGNING_LIFE - LEAD).total_seconds())
    await database.write(tokens.prepare)
    clock.advance(minutes=59, seconds=59)
    token = await issue(database, tokens)
    clock.advance(minutes=30, microseconds=-1)
    await database.write(tokens.prepare)
    for verifier in (tokens, make(vault, clock)):
        await database.read(verifier.verify, token)
    clock.advance(microseconds=1)
    assert (await is_refused(database, tokens, token)).expired


async def test_a_replaced_key_ends_its_tokens_on_every_node(database, tokens, vault, clock):
    token = await issue(database, tokens)
    other = make(vault, clock)
    for verifier in (tokens, other):
        await database.read(verifier.verify, token)
    await database.write(tokens.replace_keys)
    for verifier in (tokens, other, make(vault, clock)):
        assert not (await is_refused(database, verifier, token)).expired
    await database.read(other.verify, await issue(database, other))


async def test_only_so_many_verified_tokens_are_remembered(database, tokens, monkeypatch):
    monkeypatch.setattr(tokens._verified, "_size", 2)
    issued = [await issue(database, tokens) for _ in range(3)]
    for token in issued:
        await database.read(tokens.verify, token)
    assert [tokens.is_known(token) for token in issued] == [False, True, True]
    await database.read(tokens.verify, issued[0])
