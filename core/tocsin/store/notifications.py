"""Notifications and locks between nodes that share a database."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlalchemy import BigInteger, Connection, Select, cast, func, select

CHANNEL = "tocsin"
ALL_TOPICS = ""
"""The topic of a listener that may have missed something."""

Listener = Callable[[str], None]


def announce(connection: Connection, topic: str) -> None:
    """Tell every node that listens of `topic`, once this transaction is committed.

    A SQLite database has one node, which needs no telling.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_notify(CHANNEL, topic)))


def find_absent_nodes(connection: Connection, nodes: Sequence[int]) -> Sequence[int]:
    """Return those of these other nodes that attend no more.

    On SQLite it is all of them, since whoever runs is alone.
    """
    if connection.dialect.name != "postgresql":
        return nodes
    return [node for node in nodes if connection.execute(_select_try_lock(node)).scalar_one()]


def _select_try_lock(node: int) -> Select[tuple[bool]]:
    return select(func.pg_try_advisory_xact_lock(cast(node, BigInteger)))


def lock_exclusively(connection: Connection, what: str) -> None:
    """Return once no other transaction excludes others from `what`; this one does until its end.

    SQLite has one transaction that writes in any case.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(what, 0))))
