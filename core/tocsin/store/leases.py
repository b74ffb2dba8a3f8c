"""Leases on rows: one node at a time works on a row."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, Table, select, update

from tocsin.errors import TocsinError
from tocsin.store.notifications import find_absent_nodes

LEASE_DURATION = timedelta(seconds=90)


class LeaseLost(TocsinError):  # noqa: N818 - a state, not a mistake
    """The lease expired, or another node took it over."""


@dataclass(frozen=True, slots=True, eq=False)
class LeasedTable:
    """A table with the columns `node`, `lease` (a token) and `leased_until`."""

    table: Table
    key: Column[str]
    lost: type[LeaseLost] = LeaseLost
    """The error to raise when a lease is lost."""

    def is_free(self, row: Any, now: datetime) -> bool:
        """Return whether a row is not leased, or its lease has run out."""
        return row.lease is None or bool(row.leased_until <= now)

    def is_left(self, connection: Connection, row: Any, node: int, now: datetime) -> bool:
        """Return whether nobody works on a row: it is free, or a node left its lease behind.

        That is a node that is absent, or `node` itself, of which one task at a time works on a row:
        it could not release its lease while the database was away.
        """
        if self.is_free(row, now) or row.node == node:
            return True
        return bool(find_absent_nodes(connection, [row.node]))

    def acquire(
        self,
        connection: Connection,
        row: Any,
        key: str,
        node: int,
        now: datetime,
        *conditions: ColumnElement[bool],
        **values: Any,
    ) -> str | None:
        """Return the token of a new lease, None if the row was leased after it was read."""
        columns, token = self.table.c, secrets.token_hex(16)
        leased = (
            update(self.table)
            .where(self.key == key, columns.lease.is_not_distinct_from(row.lease), *conditions)
            .values(node=node, lease=token, leased_until=now + LEASE_DURATION, **values)
        )
        return token if connection.execute(leased).rowcount == 1 else None


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to work on a row while the token is the stored one."""

    leased: LeasedTable = field(repr=False)
    key: str
    token: str

    @property
    def conditions(self) -> tuple[ColumnElement[bool], ...]:
        """The conditions under which the lease is held."""
        return self.leased.key == self.key, self.leased.table.c.lease == self.token

    def renew(self, connection: Connection, /, now: datetime, **values: Any) -> bool:
        """Extend the lease, store the values, and return whether it was still held."""
        return self._update(connection, leased_until=now + LEASE_DURATION, **values)

    def release(self, connection: Connection, /, **values: Any) -> None:
        """Release the lease and store the values; do nothing if the lease was lost."""
        self._update(connection, node=None, lease=None, leased_until=None, **values)

    def confirm(self, connection: Connection) -> None:
        """Hold the lease until this transaction ends; raises `LeaseLost` if it was lost."""
        held = select(self.leased.key).where(*self.conditions).with_for_update(read=True)
        if connection.execute(held).first() is None:
            raise self.leased.lost(f"{self.key}: the lease is no longer held by this node")

    def _update(self, connection: Connection, **values: Any) -> bool:
        statement = update(self.leased.table).where(*self.conditions).values(values)
        return connection.execute(statement).rowcount == 1
