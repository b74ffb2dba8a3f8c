"""Notifications and locks between nodes that share a database."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlalchemy import BigInteger, Connection, Select, cast, func, select, true

CHANNEL = "tocsin"
ALL_TOPICS = ""
"""The topic for listeners that may have missed announcements."""
ANNOUNCED = "tocsin_announced"
"""The entry of a connection's `info` for the topics that its transaction announces."""

Listener = Callable[[str], None]


def announce(connection: Connection, topic: str) -> None:
    """Announce a topic to all listening nodes, once this transaction is committed.

    PostgreSQL holds one lock of the whole server while a transaction with a notification commits,
    so the notification is sent afterwards. A SQLite database has a single node, so nothing is
    announced.
    """
    connection.info.get(ANNOUNCED, set()).add(topic)


def find_absent_nodes(connection: Connection, nodes: Sequence[int]) -> Sequence[int]:
    """Return the nodes that are no longer present.

    On SQLite these are all of them, since there is only one process.
    """
    if connection.dialect.name != "postgresql":
        return nodes
    return [node for node in nodes if connection.execute(_select_try_lock(node)).scalar_one()]


def _select_try_lock(node: int) -> Select[tuple[bool]]:
    return select(func.pg_try_advisory_xact_lock(cast(node, BigInteger)))


def lock_shared(connection: Connection, what: str, **settings: str) -> None:
    """Wait for those who lock `what` exclusively, and keep them out until this transaction ends.

    PostgreSQL has the `settings` until then, too.
    """
    if connection.dialect.name == "postgresql":
        lock = func.pg_advisory_xact_lock_shared(func.hashtextextended(what, 0))
        configs = (func.set_config(name, value, true()) for name, value in settings.items())
        connection.execute(select(lock, *configs))


def lock_exclusively(connection: Connection, what: str) -> None:
    """Wait for an exclusive lock on `what`, and hold it until this transaction ends.

    SQLite has a single writing transaction anyway.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(what, 0))))
