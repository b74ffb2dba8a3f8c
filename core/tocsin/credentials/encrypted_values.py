"""Encrypted values of a database, by column: their keys, and their encryption with another one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Column, Connection, Table, select, update

from tocsin.credentials.vault import Vault
from tocsin.store.tables import metadata

_PAGE = 500


@dataclass(frozen=True, slots=True)
class EncryptedColumn:
    """A column of encrypted values."""

    table: Table
    key: Column[str]
    column: Column[Any]
    purpose: str | None
    """The purpose for which its cipher is derived from the key; None for the key itself."""

    def load(self, connection: Connection, after: str, most: int) -> list[tuple[str, bytes]]:
        """Return the next values by their keys."""
        query = (
            select(self.key, self.column)
            .where(self.column.is_not(None), self.key > after)
            .order_by(self.key)
            .limit(most)
        )
        return [(key, _to_bytes(value)) for key, value in connection.execute(query)]

    def replace(self, connection: Connection, key: str, before: bytes, after: bytes) -> bool:
        """Store a value again unless it was changed meanwhile, and return whether it was stored."""
        old, new = (self._to_stored(value) for value in (before, after))
        changed = update(self.table).where(self.key == key, self.column == old)
        return connection.execute(changed.values({self.column: new})).rowcount == 1

    def _to_stored(self, value: bytes) -> str | bytes:
        return value if self.column.type.python_type is bytes else value.decode()


def _to_bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


def list_encrypted_columns() -> list[EncryptedColumn]:
    """Return all columns of encrypted values, as the tables declare them."""
    return [
        EncryptedColumn(table, next(iter(table.primary_key)), column, column.info["encrypted"])
        for table in metadata.sorted_tables
        for column in table.columns
        if "encrypted" in column.info
    ]


def iterate_values(connection: Connection, column: EncryptedColumn) -> Iterator[bytes]:
    """Yield all values of a column."""
    after = ""
    while page := column.load(connection, after, _PAGE):
        yield from (value for _, value in page)
        after = page[-1][0]


def count_values(connection: Connection, vault: Vault) -> Counter[str | None]:
    """Return the number of values by the ID of their key; None for an unknown key."""
    return sum(count_values_by_table(connection, vault).values(), Counter())


def count_values_by_table(connection: Connection, vault: Vault) -> dict[str, Counter[str | None]]:
    """Return the number of values by table, and by the ID of their key."""
    return {
        column.table.name: Counter(
            vault.find_key(value, column.purpose) for value in iterate_values(connection, column)
        )
        for column in list_encrypted_columns()
    }


def reencrypt_batch(
    connection: Connection, vault: Vault, column: EncryptedColumn, after: str, most: int
) -> str | None:
    """Encrypt the next values of a column with the current key.

    Returns the key to continue after, None at the end. Values that no key decrypts stay.
    """
    page = column.load(connection, after, most)
    for key, value in page:
        if vault.find_key(value, column.purpose) not in {None, vault.current_id}:
            column.replace(connection, key, value, vault.reencrypt(value, column.purpose))
    return page[-1][0] if len(page) == most else None
