"""Signing keys follow each other so that no verifier meets a token whose key it cannot know."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import jwt
import pytest
from cryptography.fernet import Fernet
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from sqlalchemy import select

from tocsin.credentials import Vault
from tocsin.credentials.signing_keys import LEAD, SIGNING_LIFE, Purpose, SigningKeys
from tocsin.errors import OperatorError
from tocsin.store.tables import signing_keys

LIFE = timedelta(minutes=30)
VAULT = Vault(Fernet.generate_key().decode(), source="test")


@pytest.fixture
def keys() -> SigningKeys:
    return SigningKeys(Purpose.ACCESS, VAULT)


async def obtain(database, clock, keys) -> str:
    """Return the identifier of the key that signs now."""
    return (await database.write(keys.obtain_signing_key, clock.now())).id


async def rotate(database, clock, keys) -> bool:
    return await database.write(keys.rotate, clock.now(), token_life=LIFE)


async def published(database, clock, keys) -> list[str]:
    return [key.id for key in await database.read(keys.load_published_keys, clock.now())]


async def test_before_the_first_there_is_none(database, clock, keys):
    assert await database.read(keys.load_signing_key, clock.now()) is None
    assert await published(database, clock, keys) == []
    assert not await rotate(database, clock, keys)


async def test_the_first_signs_at_once_and_is_published(database, clock, keys):
    key = await obtain(database, clock, keys)
    assert await published(database, clock, keys) == [key]
    assert await obtain(database, clock, keys) == key


@pytest.mark.parametrize(
    ("purpose", "algorithm", "kind"),
    [(Purpose.ACCESS, "RS256", RSAPrivateKey), (Purpose.ADMIN, "EdDSA", Ed25519PrivateKey)],
)
async def test_what_a_key_signs_its_public_half_verifies(database, clock, purpose, algorithm, kind):
    keys = SigningKeys(purpose, VAULT)
    key = await database.write(keys.obtain_signing_key, clock.now())
    assert isinstance(key.private_key, kind)
    token = jwt.encode({"sub": "x"}, key.private_key, key.algorithm)
    public = await database.read(keys.load_public_key, key.id, clock.now())
    assert public.algorithm == key.algorithm == algorithm
    assert jwt.decode(token, public.pem, [algorithm]) == {"sub": "x"}


async def test_a_key_is_of_one_purpose_alone(database, clock, keys):
    admin = SigningKeys(Purpose.ADMIN, VAULT)
    key, other = await obtain(database, clock, keys), await obtain(database, clock, admin)
    assert key != other
    assert await published(database, clock, keys) == [key]
    assert await database.read(keys.load_public_key, other, clock.now()) is None
    await database.write(admin.revoke_all)
    assert await obtain(database, clock, keys) == key


async def test_a_private_key_is_stored_encrypted(database, clock, keys):
    await obtain(database, clock, keys)
    [row] = await database.read(lambda c: c.execute(select(signing_keys)).all())
    assert "PUBLIC KEY" in row.public_key
    assert b"PRIVATE" not in row.private_key
    assert b"PRIVATE KEY" in VAULT.decrypt(row.private_key)
    stranger = SigningKeys(Purpose.ACCESS, Vault(Fernet.generate_key().decode(), source="test"))
    with pytest.raises(OperatorError, match="does not match the database"):
        await database.read(stranger.load_signing_key, clock.now())


async def test_a_key_signs_for_ninety_days_and_the_next_is_published_an_hour_before(
    database, clock, keys
):
    first = await obtain(database, clock, keys)
    clock.advance(days=90, hours=-1, microseconds=-1)
    assert not await rotate(database, clock, keys)
    clock.advance(microseconds=1)
    assert await rotate(database, clock, keys)
    assert not await rotate(database, clock, keys), "the next one is there"
    [_, second] = await published(database, clock, keys)
    clock.advance(hours=1, microseconds=-1)
    assert await obtain(database, clock, keys) == first
    clock.advance(microseconds=1)
    assert await obtain(database, clock, keys) == second


async def test_a_key_is_published_until_the_last_token_that_it_signed_has_expired(
    database, clock, keys
):
    first = await obtain(database, clock, keys)
    clock.advance(days=90, hours=-1)
    await rotate(database, clock, keys)
    clock.advance(hours=1, microseconds=-1)
    assert await obtain(database, clock, keys) == first
    clock.advance(minutes=30)
    assert first in await published(database, clock, keys), "its last token ends now"
    assert await database.read(keys.load_public_key, first, clock.now()) is not None
    clock.advance(hours=1, microseconds=1)
    assert first not in await published(database, clock, keys)
    assert await database.read(keys.load_public_key, first, clock.now()) is None


async def test_a_key_that_has_retired_is_deleted(database, clock, keys):
    first = await obtain(database, clock, keys)
    for _ in range(3):
        clock.advance(days=90)
        await rotate(database, clock, keys)
    rows = await database.read(lambda c: c.execute(select(signing_keys.c.id)).scalars().all())
    assert len(rows) == 2, "one that signs or did lately, and the next"
    assert first not in rows


async def test_after_a_year_away_the_old_key_signs_until_the_next_is_known(database, clock, keys):
    first = await obtain(database, clock, keys)
    clock.advance(days=365)
    assert await rotate(database, clock, keys)
    assert await obtain(database, clock, keys) == first
    clock.advance(hours=1)
    assert await obtain(database, clock, keys) != first


async def test_at_every_hour_of_years_a_published_key_signs(database, clock, keys):
    """What was signed is verified for as long as it lives, whenever the upkeep is done."""
    lasting: list[tuple[str, object]] = []
    for _ in range(80):
        clock.advance(days=9, hours=7, minutes=13)
        key = await obtain(database, clock, keys)
        lasting.append((key, clock.now() + LIFE))
        await rotate(database, clock, keys)
        known = await published(database, clock, keys)
        assert {key for key, until in lasting if clock.now() < until} <= set(known)
    assert len({key for key, _ in lasting}) >= 8


async def test_nodes_that_rotate_at_once_keep_every_token_valid(database, clock, keys):
    first = await obtain(database, clock, keys)
    clock.advance(days=90)
    others = [SigningKeys(Purpose.ACCESS, VAULT) for _ in range(4)]
    await asyncio.gather(*(rotate(database, clock, each) for each in others))
    clock.advance(hours=1)
    signing = {await obtain(database, clock, each) for each in others}
    known = await published(database, clock, keys)
    assert len(signing) == 1
    assert signing | {first} <= set(known)
    assert first not in signing


async def test_what_is_revoked_verifies_nothing_more_and_the_next_key_is_another(
    database, clock, keys
):
    first = await obtain(database, clock, keys)
    await database.write(keys.revoke_all)
    assert await published(database, clock, keys) == []
    assert await database.read(keys.load_public_key, first, clock.now()) is None
    assert await obtain(database, clock, keys) != first


def test_a_key_is_published_longer_than_others_may_keep_the_set():
    from tocsin.web.routes.oauth import _PUBLIC

    kept = timedelta(seconds=int(_PUBLIC["Cache-Control"].partition("max-age=")[2]))
    assert kept < LEAD < SIGNING_LIFE
