"""The keys that tokens are signed with: Ed25519, one per purpose, encrypted at rest."""

from __future__ import annotations

from datetime import datetime

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy import Connection, bindparam, select
from ulid import ULID

from tocsin.credentials.vault import Vault
from tocsin.store.conflicts import insert_into
from tocsin.store.tables import signing_keys

_stored = select(signing_keys.c.private_key).where(signing_keys.c.purpose == bindparam("purpose"))


def find_signing_key(
    connection: Connection, vault: Vault, purpose: str
) -> Ed25519PrivateKey | None:
    """Return the key of this purpose, or None where nothing was ever signed with one."""
    stored = connection.execute(_stored, {"purpose": purpose}).scalar_one_or_none()
    return None if stored is None else Ed25519PrivateKey.from_private_bytes(vault.decrypt(stored))


def obtain_signing_key(
    connection: Connection, vault: Vault, purpose: str, now: datetime
) -> Ed25519PrivateKey:
    """Return the key of this purpose, made now where there is none; to be called in a write."""
    found = find_signing_key(connection, vault, purpose)
    return found or _create(connection, vault, purpose, now)


def _create(connection: Connection, vault: Vault, purpose: str, now: datetime) -> Ed25519PrivateKey:
    """Whoever inserts first decides, and everyone returns what is stored then."""
    private_key = vault.encrypt(Ed25519PrivateKey.generate().private_bytes_raw())
    row = {"id": str(ULID()), "purpose": purpose, "private_key": private_key, "created_at": now}
    connection.execute(insert_into(connection, signing_keys).values(row).on_conflict_do_nothing())
    stored = connection.execute(_stored, {"purpose": purpose}).scalar_one()
    return Ed25519PrivateKey.from_private_bytes(vault.decrypt(stored))
