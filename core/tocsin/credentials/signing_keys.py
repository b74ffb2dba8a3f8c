"""The keys that tokens are signed with: several for each purpose, encrypted at rest.

A key is published as soon as it is made, signs from `signs_from` on, and stays published until
`retires_at`, so that no verifier meets a token whose key it cannot have seen, and no token outlives
its key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from sqlalchemy import Connection, Row, and_, bindparam, delete, insert, or_, select, update
from ulid import ULID

from tocsin.credentials.vault import Vault
from tocsin.store.tables import signing_keys

LEAD = timedelta(hours=1)
"""How long a key is published before it signs: longer than others may keep what they read."""
SIGNING_LIFE = timedelta(days=90)
"""How long a key signs before the next one does."""


class Purpose(StrEnum):
    """What a key signs; it never signs anything else."""

    ADMIN = "admin"
    ACCESS = "access"


ALGORITHMS = {Purpose.ADMIN: "EdDSA", Purpose.ACCESS: "RS256"}
"""RFC 9068 section 2.1 asks every authorization server for RS256."""

PrivateKey = Ed25519PrivateKey | RSAPrivateKey


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A key that signs."""

    id: str
    algorithm: str
    private_key: PrivateKey


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A key that verifies."""

    id: str
    algorithm: str
    pem: str


_t = signing_keys.c
_of_purpose = select(signing_keys).where(_t.purpose == bindparam("purpose"))
_published = or_(_t.retires_at.is_(None), _t.retires_at > bindparam("now"))
_signing = (
    _of_purpose.where(_t.signs_from <= bindparam("now"), _published)
    .order_by(_t.signs_from.desc(), _t.id.desc())
    .limit(1)
)
_one = select(_t.public_key, _t.algorithm).where(
    _t.id == bindparam("id"), _t.purpose == bindparam("purpose"), _published
)


class SigningKeys:
    """The keys of one purpose."""

    def __init__(self, purpose: Purpose, vault: Vault) -> None:
        self._purpose = purpose
        self._vault = vault
        self._decrypted: dict[str, PrivateKey] = {}

    def signing(self, connection: Connection, now: datetime) -> SigningKey | None:
        """Return the key to sign with, None where none was made yet."""
        values = {"purpose": self._purpose, "now": now}
        row = connection.execute(_signing, values).one_or_none()
        return None if row is None else SigningKey(row.id, row.algorithm, self._decrypt(row))

    def obtain(self, connection: Connection, now: datetime) -> SigningKey:
        """Return the key to sign with, made now where there is none; to be called in a write."""
        found = self.signing(connection, now)
        return found or self._create(connection, now, signs_from=now)

    def public_key(self, connection: Connection, key_id: str, now: datetime) -> PublicKey | None:
        """Return the key that verifies what `key_id` signed, None where it is not valid."""
        values = {"id": key_id, "purpose": self._purpose, "now": now}
        row = connection.execute(_one, values).one_or_none()
        return None if row is None else PublicKey(key_id, row.algorithm, row.public_key)

    def published(self, connection: Connection, now: datetime) -> Sequence[PublicKey]:
        """Return every key that others may meet, the oldest first."""
        statement = _of_purpose.where(_published).order_by(_t.signs_from, _t.id)
        rows = connection.execute(statement, {"purpose": self._purpose, "now": now})
        return [PublicKey(row.id, row.algorithm, row.public_key) for row in rows]

    def rotate(self, connection: Connection, now: datetime, *, token_life: timedelta) -> bool:
        """Make the next key where the newest has signed long enough; return whether one was made.

        The keys before it retire when the last token that they signed has expired. What has
        retired is deleted.
        """
        mine = _t.purpose == self._purpose
        connection.execute(delete(signing_keys).where(mine, _t.retires_at <= now))
        newest = select(_t.signs_from).where(mine).order_by(_t.signs_from.desc()).limit(1)
        signs_from = connection.scalars(newest).one_or_none()
        if signs_from is None or now < signs_from + SIGNING_LIFE - LEAD:
            return False
        older = update(signing_keys).where(and_(mine, _t.retires_at.is_(None)))
        connection.execute(older.values(retires_at=now + LEAD + token_life + LEAD))
        self._create(connection, now, signs_from=now + LEAD)
        return True

    def revoke_all(self, connection: Connection) -> None:
        """Delete every key, and with it every token that one of them signed."""
        connection.execute(delete(signing_keys).where(_t.purpose == self._purpose))

    def _create(self, connection: Connection, now: datetime, *, signs_from: datetime) -> SigningKey:
        private_key = _generate(self._purpose)
        key = SigningKey(str(ULID()), ALGORITHMS[self._purpose], private_key)
        row = {
            "id": key.id,
            "purpose": self._purpose,
            "algorithm": key.algorithm,
            "public_key": _public_pem(private_key),
            "private_key": self._vault.encrypt(_private_pem(private_key)),
            "created_at": now,
            "signs_from": signs_from,
        }
        connection.execute(insert(signing_keys).values(row))
        return key

    def _decrypt(self, row: Row[tuple[object, ...]]) -> PrivateKey:
        if row.id not in self._decrypted:
            pem = self._vault.decrypt(row.private_key)
            # We made it, and the vault has authenticated it: there is nothing to validate
            key = load_pem_private_key(pem, password=None, unsafe_skip_rsa_key_validation=True)
            assert isinstance(key, PrivateKey)  # noqa: S101 - what `_generate` made
            self._decrypted = {row.id: key}
        return self._decrypted[row.id]


def _generate(purpose: Purpose) -> PrivateKey:
    if purpose is Purpose.ADMIN:
        return Ed25519PrivateKey.generate()
    return generate_private_key(public_exponent=65_537, key_size=2048)


def _private_pem(key: PrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _public_pem(key: PrivateKey) -> str:
    public = key.public_key()
    return public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
