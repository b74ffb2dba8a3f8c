"""Admin tokens admit their holder until they expire, and nothing else does."""

from __future__ import annotations

import asyncio
from base64 import urlsafe_b64encode
from datetime import timedelta

import jwt
import pytest
from cryptography.fernet import Fernet
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tocsin.credentials import Admins, Vault
from tocsin.credentials.admins import is_admin_token
from tocsin.credentials.signing_keys import Purpose, SigningKey, SigningKeys
from tocsin.credentials.tokens import TokenError, read_header
from tocsin.errors import OperatorError

HOUR = timedelta(hours=1)


@pytest.fixture
def vault() -> Vault:
    return Vault(Fernet.generate_key().decode(), source="test")


@pytest.fixture
def admins(vault, clock) -> Admins:
    return Admins(vault, clock)


async def test_a_token_names_its_admin(database, admins):
    token = await database.write(admins.issue, name="ana", expires_in=HOUR)
    assert await database.read(admins.verify, token) == "ana"


async def test_a_token_says_what_it_is(database, admins, clock):
    token = await database.write(admins.issue, name="ana", expires_in=HOUR)
    header = jwt.get_unverified_header(token)
    assert header == {"alg": "EdDSA", "typ": "tocsin-admin+jwt", "kid": header["kid"]}
    claims = jwt.decode(token, options={"verify_signature": False})
    now = int(clock.now().timestamp())
    assert claims | {"jti": ""} == {
        "iss": "tocsin",
        "aud": "tocsin-admin",
        "sub": "ana",
        "role": "admin",
        "iat": now,
        "exp": now + 3600,
        "jti": "",
    }


async def test_a_token_expires(database, admins, clock):
    token = await database.write(admins.issue, name="ana", expires_in=HOUR)
    clock.advance(minutes=59)
    await database.read(admins.verify, token)
    clock.advance(minutes=1)
    with pytest.raises(TokenError) as error:
        await database.read(admins.verify, token)
    assert error.value.expired


async def test_tokens_are_valid_however_many_need_the_first_key_at_once(database, admins):
    issued = [database.write(admins.issue, name="ana", expires_in=HOUR) for _ in range(8)]
    for token in await asyncio.gather(*issued):
        assert await database.read(admins.verify, token) == "ana"


async def test_before_any_was_issued_no_token_is_valid(database, admins):
    token = jwt.encode({}, Ed25519PrivateKey.generate(), "EdDSA", {"typ": "tocsin-admin+jwt"})
    with pytest.raises(TokenError):
        await database.read(admins.verify, token)


async def test_a_key_that_was_encrypted_otherwise_is_the_operators_to_mend(database, admins, clock):
    await database.write(admins.issue, name="ana", expires_in=HOUR)
    stranger = Admins(Vault(Fernet.generate_key().decode(), source="test"), clock)
    with pytest.raises(OperatorError, match="does not match the database"):
        await database.write(stranger.issue, name="ana", expires_in=HOUR)


@pytest.mark.parametrize("expires_in", [timedelta(0), -HOUR, timedelta(days=366)])
async def test_a_lifetime_is_bounded(database, admins, expires_in):
    with pytest.raises(OperatorError, match="365d"):
        await database.write(admins.issue, name="ana", expires_in=expires_in)


async def _signing(database, vault, clock):
    """Return the key that signs, and the header of what it signs."""
    keys = SigningKeys(Purpose.ADMIN, vault)
    key: SigningKey = await database.write(keys.obtain_signing_key, clock.now())
    return key.private_key, {"typ": "tocsin-admin+jwt", "kid": key.id}


def _claims(clock, **changed):
    now = int(clock.now().timestamp())
    claims = {
        "iss": "tocsin",
        "aud": "tocsin-admin",
        "sub": "ana",
        "role": "admin",
        "iat": now,
        "exp": now + 60,
        "jti": "1",
    }
    return {name: value for name, value in (claims | changed).items() if value is not None}


WRONG_CLAIMS = [{name: None} for name in ("iss", "aud", "sub", "role", "iat", "exp", "jti")] + [
    {"iss": "other"},
    {"aud": "other"},
    {"aud": ["tocsin-admin"]},
    {"role": "user"},
    {"sub": 7},
    {"exp": "soon"},
]


@pytest.mark.parametrize("changed", WRONG_CLAIMS, ids=str)
async def test_every_claim_is_required_and_checked(database, admins, vault, clock, changed):
    key, header = await _signing(database, vault, clock)
    good = jwt.encode(_claims(clock), key, "EdDSA", header)
    assert await database.read(admins.verify, good) == "ana"
    bad = _encode_anything(_claims(clock, **changed), key, header)
    with pytest.raises(TokenError):
        await database.read(admins.verify, bad)


def _encode_anything(claims, key, header):
    """PyJWT refuses to write some of what it would have to refuse to read."""
    import json

    return jwt.PyJWS().encode(json.dumps(claims).encode(), key, "EdDSA", header)


async def test_neither_another_key_nor_another_algorithm_nor_another_type_passes(
    database, admins, vault, clock
):
    key, header = await _signing(database, vault, clock)
    public = key.public_key().public_bytes_raw()
    claims = _claims(clock)
    for token in (
        jwt.encode(claims, Ed25519PrivateKey.generate(), "EdDSA", header),
        jwt.encode(claims, public, "HS256", header),
        jwt.encode(claims, "", "none", header),
        jwt.encode(claims, key, "EdDSA", {"typ": "at+jwt"}),
        jwt.encode(claims, key, "EdDSA"),
    ):
        with pytest.raises(TokenError):
            await database.read(admins.verify, token)


NO_TOKENS = ["", ".", "..", "a.b.c", "é", "\udcff", "a" * 5000, "e30.e30.e30"]


@pytest.mark.parametrize("text", NO_TOKENS, ids=lambda text: ascii(text[:20]))
def test_what_is_no_token_is_told_without_looking_anything_up(text):
    assert not is_admin_token(read_header(text))


def test_a_deeply_nested_header_is_no_token():
    nested = urlsafe_b64encode(b"[" * 3000).decode()
    assert not is_admin_token(read_header(f"{nested}.e30.e30"))
