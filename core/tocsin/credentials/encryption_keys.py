"""Encryption keys of a database: which one encrypts, which are still needed, and the change.

A new key comes into use once all running nodes can read it. Nodes then encrypt with it, and one of
them encrypts what is stored again. The earlier key is retired when no value needs it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from tocsin import audit
from tocsin.clock import isoformat
from tocsin.credentials.encrypted_values import count_values, count_values_by_table
from tocsin.credentials.vault import Vault, open_vault
from tocsin.errors import OperatorError
from tocsin.settings import Settings
from tocsin.store import Database, LeasedTable, find_node_keys, lock_exclusively
from tocsin.store.tables import derived_keys, encryption_keys, signing_keys

SETTLED_AFTER = timedelta(minutes=1)
"""The time for which all nodes encrypt with a new key before the earlier one may be retired.

A value that was encrypted before may be stored only now.
"""
KEYS = LeasedTable(encryption_keys, encryption_keys.c.id)
_LOCK = "encryption keys"
_OF_LOST_KEY = " of "
"""Separates the purpose of a derived key from the ID of the lost key that encrypts it."""


class EncryptionKeyState(StrEnum):
    """Use of an encryption key."""

    CURRENT = "current"
    PREVIOUS = "previous"
    """Stored values may still need it."""
    RETIRED = "retired"
    """No stored value needs it."""


@dataclass(frozen=True, slots=True)
class StoredEncryptionKey:
    """An encryption key as the database knows it."""

    id: str
    state: EncryptionKeyState
    started_at: datetime
    retired_at: datetime | None
    remaining: int | None
    """Values that need this earlier key, as last counted; None before that."""


def load_encryption_keys(connection: Connection) -> Sequence[StoredEncryptionKey]:
    """Return the keys that the database uses or used, the newest first."""
    k = encryption_keys.c
    columns = (k.id, k.state, k.started_at, k.retired_at, k.remaining)
    rows = connection.execute(select(*columns).order_by(k.started_at.desc(), k.id)).all()
    return [StoredEncryptionKey(row[0], EncryptionKeyState(row[1]), *row[2:]) for row in rows]


def list_key_use(connection: Connection, vault: Vault) -> list[dict[str, Any]]:
    """Return the keys of the database and of the vault, and the values that need each of them."""
    counts = count_values_by_table(connection, vault)
    stored = {key.id: key for key in load_encryption_keys(connection)}
    unused = [key_id for key_id in vault.key_ids if key_id not in stored]
    found = [_represent_use(key_id, stored.get(key_id), counts) for key_id in (*unused, *stored)]
    if any(count[None] for count in counts.values()):
        found.append(_represent_use(None, None, counts))
    return found


def _represent_use(
    key_id: str | None,
    stored: StoredEncryptionKey | None,
    counts: Mapping[str, Counter[str | None]],
) -> dict[str, Any]:
    values = {table: count[key_id] for table, count in counts.items() if count[key_id]}
    state = "unknown" if key_id is None else "new"
    return {
        "key": key_id,
        "state": state if stored is None else stored.state.value,
        "since": None if stored is None else isoformat(stored.retired_at or stored.started_at),
        "values": sum(values.values()),
        "tables": ", ".join(f"{count} {table}" for table, count in values.items()) or None,
    }


def adopt_keys(connection: Connection, vault: Vault) -> None:
    """Have a vault encrypt with the key that the database uses.

    Raises OperatorError where the vault lacks a key that the database needs.
    """
    stored = load_encryption_keys(connection)
    current = next((key.id for key in stored if key.state is EncryptionKeyState.CURRENT), None)
    if current is None:
        current = _find_first_key(connection, vault)
    elif current not in vault.key_ids:
        raise OperatorError(
            f"{vault.source}: this encryption key does not match the database, which uses the key "
            f"{current}; found {', '.join(vault.key_ids)}. To change the key, keep {current} and "
            "put the new key before it; see docs/operators/encryption-key.md"
        )
    _require_previous(connection, vault, stored)
    derived = connection.execute(select(derived_keys.c.purpose, derived_keys.c.content)).all()
    kept = {purpose: content for purpose, content in derived if _OF_LOST_KEY not in purpose}
    vault.use(current, {purpose: vault.decrypt(content) for purpose, content in kept.items()})


def adopt_lost_keys(connection: Connection, vault: Vault) -> None:
    """Have a vault derive what it derived before its key was lost or given up."""
    derived = connection.execute(select(derived_keys.c.purpose, derived_keys.c.content)).all()
    values = {
        purpose.partition(_OF_LOST_KEY)[0]: vault.decrypt(content)
        for purpose, content in derived
        if vault.find_key(content) is not None
    }
    vault.use(vault.current_id, values)


def _find_first_key(connection: Connection, vault: Vault) -> str:
    """Return the key of a database that has not recorded one: the oldest, unless it is known."""
    value = connection.scalars(select(signing_keys.c.private_key).limit(1)).one_or_none()
    if value is None:
        return vault.key_ids[-1]
    vault.decrypt(value)  # raises what is wrong
    return vault.find_key(value) or vault.current_id


def _require_previous(
    connection: Connection, vault: Vault, stored: Sequence[StoredEncryptionKey]
) -> None:
    missing = [
        key.id
        for key in stored
        if key.state is EncryptionKeyState.PREVIOUS and key.id not in vault.key_ids
    ]
    if not missing:
        return
    if needed := count_values(connection, vault)[None]:
        raise OperatorError(
            f"{vault.source}: the key {', '.join(missing)} is missing, but some stored values "
            f"({needed}) are still encrypted with it; put this key after the new one again, and "
            "remove it only when `tocsin db keys` shows it as retired"
        )


async def open_proven_vault(settings: Settings, database: Database) -> Vault:
    """Return the vault after checking that its keys match the database.

    A key is generated only if the database contains no encrypted data. Raises OperatorError.
    """
    is_empty = await database.read(_is_empty)
    vault = open_vault(settings, generate=is_empty)
    await database.read(adopt_keys, vault)
    return vault


def _is_empty(connection: Connection) -> bool:
    queries = (select(signing_keys.c.id), select(encryption_keys.c.id))
    return all(connection.execute(query.limit(1)).first() is None for query in queries)


def register_key(connection: Connection, vault: Vault, now: datetime) -> None:
    """Record the key that the database uses, unless one is recorded."""
    lock_exclusively(connection, _LOCK)
    if not load_encryption_keys(connection):
        _insert_current(connection, vault.current_id, now)


def forget_lost_keys(connection: Connection, vault: Vault) -> bool:
    """Have a vault encrypt with its newest key where it has no key of the database.

    Values of the lost key stay, unreadable without it. Returns whether a key was lost; raises
    OperatorError where the vault lacks only one of several.
    """
    try:
        adopt_keys(connection, vault)
    except OperatorError:
        known = load_encryption_keys(connection)
        if {key.id for key in known}.intersection(vault.key_ids):
            raise
        is_kept = derived_keys.c.purpose.not_like(f"%{_OF_LOST_KEY}%")
        for lost in known[:1]:
            purpose = derived_keys.c.purpose + f"{_OF_LOST_KEY}{lost.id}"
            connection.execute(update(derived_keys).where(is_kept).values(purpose=purpose))
        connection.execute(delete(encryption_keys))
        vault.use(vault.key_ids[0], {})
        return True
    return False


def _insert_current(connection: Connection, key_id: str, now: datetime) -> None:
    row = {"id": key_id, "state": EncryptionKeyState.CURRENT, "started_at": now}
    connection.execute(insert(encryption_keys).values(row))


@dataclass(frozen=True, slots=True)
class KeyChange:
    """What became of a key that the database does not know."""

    is_done: bool
    waits_for: Collection[str] = ()
    """The running nodes that cannot read it."""


def find_nodes_without(connection: Connection, key_id: str, now: datetime) -> Sequence[str]:
    """Return the names of the running nodes that cannot read a key."""
    nodes = find_node_keys(connection, now)
    return [name for name, keys in nodes if key_id not in keys.get("reads", ())]


def begin_change(
    connection: Connection, vault: Vault, retained: Collection[str], now: datetime
) -> KeyChange:
    """Have the database use the newest key, if all running nodes can read it.

    What was derived from the first key for the `retained` purposes is stored, so that it stays. A
    key that the database used before does not come into use again.
    """
    lock_exclusively(connection, _LOCK)
    newest, known = vault.key_ids[0], load_encryption_keys(connection)
    if newest in {key.id for key in known}:
        return KeyChange(is_done=False)
    if waits_for := find_nodes_without(connection, newest, now):
        return KeyChange(is_done=False, waits_for=waits_for)
    adopt_keys(connection, vault)  # what another node has changed meanwhile
    stored = connection.scalars(select(derived_keys.c.purpose)).all()
    for purpose in set(retained).difference(stored):
        content = vault.encrypt_with(newest, vault.derive(purpose))
        connection.execute(insert(derived_keys).values(purpose=purpose, content=content))
    is_current = encryption_keys.c.state == EncryptionKeyState.CURRENT
    connection.execute(
        update(encryption_keys)
        .where(is_current)
        .values(state=EncryptionKeyState.PREVIOUS, remaining=None)
    )
    _insert_current(connection, newest, now)
    _record(connection, "encryption-key.change", newest, now)
    return KeyChange(is_done=True)


def is_settled(connection: Connection, vault: Vault, now: datetime) -> bool:
    """Return whether all running nodes encrypt with the current key, for long enough."""
    [current] = [
        key for key in load_encryption_keys(connection) if key.state is EncryptionKeyState.CURRENT
    ]
    used = {keys.get("encrypts") for _, keys in find_node_keys(connection, now)}
    is_old_enough = now - current.started_at >= SETTLED_AFTER
    return is_old_enough and vault.current_id == current.id and used <= {current.id}


def record_remaining(
    connection: Connection,
    vault: Vault,
    counts: Counter[str | None],
    now: datetime,
    *,
    settled: bool,
) -> Sequence[str]:
    """Store how many values need each earlier key, and return the keys that retire.

    A key retires when no value needs it, and only if the database was `settled` before the values
    were counted. A retired key that is needed again becomes a previous key.
    """
    retiring = []
    for key in load_encryption_keys(connection):
        if key.state is EncryptionKeyState.CURRENT or key.id not in vault.key_ids:
            continue
        state = _judge(key, counts[key.id], settled=settled)
        values: dict[str, Any] = {"remaining": counts[key.id], "state": state}
        if state is not key.state:
            values["retired_at"] = now if state is EncryptionKeyState.RETIRED else None
            if state is EncryptionKeyState.RETIRED:
                retiring.append(key.id)
                _record(connection, "encryption-key.retire", key.id, now)
        connection.execute(
            update(encryption_keys).where(encryption_keys.c.id == key.id).values(values)
        )
    return retiring


def _judge(key: StoredEncryptionKey, count: int, *, settled: bool) -> EncryptionKeyState:
    if count:
        return EncryptionKeyState.PREVIOUS
    return EncryptionKeyState.RETIRED if settled else key.state


def _record(connection: Connection, action: str, key_id: str, now: datetime) -> None:
    audit.record_local(connection, now, "system", action, target=f"encryption-key:{key_id}")
