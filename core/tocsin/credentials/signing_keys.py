"""Signing keys of tokens: several for each purpose, encrypted at rest.

A key is published when it is created, signs from `signs_from` on, and stays published until
`retires_at`. So verifiers always know the key of a token, and no token outlives its key.
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
"""Time between publication and first use: longer than clients may cache the key set."""
SIGNING_LIFE = timedelta(days=90)
"""Time that a key signs before the next one takes over."""


class Purpose(StrEnum):
    """Purpose of a key; a key has exactly one."""

    ADMIN = "admin"
    ACCESS = "access"


ALGORITHMS = {Purpose.ADMIN: "EdDSA", Purpose.ACCESS: "RS256"}
"""RFC 9068 section 2.1 asks every authorization server for RS256."""

PrivateKey = Ed25519PrivateKey | RSAPrivateKey


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A private key with its ID and algorithm."""

    id: str
    algorithm: str
    private_key: PrivateKey


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A public key with its ID and algorithm."""

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

    def load_signing_key(self, connection: Connection, now: datetime) -> SigningKey | None:
        """Return the current signing key, None if there is none."""
        values = {"purpose": self._purpose, "now": now}
        row = connection.execute(_signing, values).one_or_none()
        return None if row is None else SigningKey(row.id, row.algorithm, self._decrypt(row))

    def obtain_signing_key(self, connection: Connection, now: datetime) -> SigningKey:
        """Return the current signing key, created if needed; call this in a write transaction."""
        found = self.load_signing_key(connection, now)
        return found or self._create(connection, now, signs_from=now)

    def load_public_key(
        self, connection: Connection, key_id: str, now: datetime
    ) -> PublicKey | None:
        """Return the public key with this ID, None if it is not valid."""
        values = {"id": key_id, "purpose": self._purpose, "now": now}
        row = connection.execute(_one, values).one_or_none()
        return None if row is None else PublicKey(key_id, row.algorithm, row.public_key)

    def load_published_keys(self, connection: Connection, now: datetime) -> Sequence[PublicKey]:
        """Return all published keys, oldest first."""
        statement = _of_purpose.where(_published).order_by(_t.signs_from, _t.id)
        rows = connection.execute(statement, {"purpose": self._purpose, "now": now})
        return [PublicKey(row.id, row.algorithm, row.public_key) for row in rows]

    def rotate(self, connection: Connection, now: datetime, *, token_life: timedelta) -> bool:
        """Create the next key when it is due; return whether one was created.

        Earlier keys retire when the last token that they signed has expired. Retired keys are
        deleted.
        """
        is_own = _t.purpose == self._purpose
        connection.execute(delete(signing_keys).where(is_own, _t.retires_at <= now))
        newest = select(_t.signs_from).where(is_own).order_by(_t.signs_from.desc()).limit(1)
        signs_from = connection.scalars(newest).one_or_none()
        if signs_from is None or now < signs_from + SIGNING_LIFE - LEAD:
            return False
        older = update(signing_keys).where(and_(is_own, _t.retires_at.is_(None)))
        connection.execute(older.values(retires_at=now + LEAD + token_life + LEAD))
        self._create(connection, now, signs_from=now + LEAD)
        return True

    def revoke_all(self, connection: Connection) -> None:
        """Delete all keys, which invalidates all tokens that they signed."""
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
            # The vault has authenticated this key, so it needs no validation
            key = load_pem_private_key(pem, password=None, unsafe_skip_rsa_key_validation=True)
            assert isinstance(key, PrivateKey)  # noqa: S101 - created by `_generate`
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
