"""Time limits of PostgreSQL sessions, so that frozen or lost nodes do not hold locks for long.

They are set by `SET` after connecting: poolers refuse or drop parameters of the startup message.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sqlalchemy import BindParameter, Connection, bindparam, event, text
from sqlalchemy.engine.interfaces import AdaptedConnection

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

# Names and units of section 20.3.2 and 20.11.1 of PostgreSQL's manual: milliseconds, and seconds
# for the keepalives. The limit for locks is longer than that for idle transactions, so that a node
# that waits for a frozen one still gets the lock.
SESSION_LIMITS: Mapping[str, str] = {
    "idle_in_transaction_session_timeout": "10000",
    "lock_timeout": "15000",
    "statement_timeout": "60000",
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "4",
    "tcp_user_timeout": "30000",
}
"""Parameters of every session, in the units of `pg_settings`."""
SCHEMA_CHANGE_SECONDS = 300
"""How long one statement of a migration may take, and this side waits for any answer."""
SHARES_SESSIONS = "tocsin_shares_sessions"
"""Execution option: a pooler lets other clients use the session between transactions."""

# The same limits for this side of the connection (tcp(7)); Linux only, others have fewer of them
_SOCKET_OPTIONS = {
    "TCP_KEEPIDLE": 10,
    "TCP_KEEPINTVL": 5,
    "TCP_KEEPCNT": 4,
    "TCP_USER_TIMEOUT": 30_000,
}


def limit_sessions(engine: AsyncEngine, limits: Mapping[str, str]) -> None:
    """Set the limits on every session that the engine opens, on both sides."""
    statements = "; ".join(f"SET {name} = {value}" for name, value in limits.items())

    @event.listens_for(engine.sync_engine, "connect")
    def prepare(connection: AdaptedConnection, _record: object) -> None:
        _limit_socket(connection.driver_connection)
        if statements:
            connection.run_async(lambda driver: driver.execute(statements))


def _limit_socket(driver: Any) -> None:
    """Let the kernel give up on a server that does not acknowledge what was sent."""
    connected = driver._transport.get_extra_info("socket")  # noqa: SLF001 - asyncpg has no other way
    if connected.family == socket.AF_UNIX:  # the kernel itself is the other side
        return
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _SOCKET_OPTIONS.items():
        if (option := getattr(socket, name, None)) is not None:
            connected.setsockopt(socket.IPPROTO_TCP, option, value)


def allow_long_transaction(connection: Connection) -> None:
    """Allow this transaction to take as long as a migration, even between its statements."""
    if connection.dialect.name == "postgresql":
        for name in ("statement_timeout", "idle_in_transaction_session_timeout"):
            connection.execute(text(f"SET LOCAL {name} = '{SCHEMA_CHANGE_SECONDS}s'"))


def find_missing_limits(connection: Connection) -> list[str]:
    """Return a sentence for each limit that this session does not have; none on SQLite."""
    return [
        f"{name}: found {found or 'nothing'}, expected {SESSION_LIMITS[name]}"
        for name, found in _compare_limits(connection).items()
    ]


def list_missing_defaults(connection: Connection) -> list[str]:
    """Return the statements that set the missing limits as this role's defaults."""
    missing = _compare_limits(connection)
    quoted = text("SELECT quote_ident(current_user), quote_ident(current_database())")
    user, database = connection.execute(quoted).one()
    return [
        f"ALTER ROLE {user} IN DATABASE {database} SET {name} = {SESSION_LIMITS[name]};"
        for name in missing
    ]


def _compare_limits(connection: Connection) -> dict[str, str | None]:
    """Return the limits that differ, with what was found.

    Those of TCP do not count for a Unix socket, nor behind a pooler, which has connections of its
    own.
    """
    if connection.dialect.name != "postgresql":
        return {}
    query = text("SELECT name, setting FROM pg_settings WHERE name IN :names")
    names: BindParameter[list[str]] = bindparam("names", list(SESSION_LIMITS), expanding=True)
    found = dict(map(tuple, connection.execute(query.bindparams(names))))
    by_tcp = connection.execute(text("SELECT inet_client_addr() IS NOT NULL")).scalar_one()
    is_direct = by_tcp and not connection.get_execution_options().get(SHARES_SESSIONS)
    return {
        name: found.get(name)
        for name, value in SESSION_LIMITS.items()
        if found.get(name) != value and (is_direct or not name.startswith("tcp_"))
    }
