"""SQLAlchemy engines for PostgreSQL: which host they connect to, and how."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from tocsin.errors import OperatorError
from tocsin.store.server_address import ServerAddress
from tocsin.store.session_limits import SCHEMA_CHANGE_SECONDS, limit_sessions
from tocsin.store.text import dump_json, load_json


class HostSelector:
    """Connects to the first host that serves as the address requires.

    It begins with the host that served last, so that a host that is down delays one connection
    only. Each host has a time of its own: one that does not respond leaves time for the next.
    """

    def __init__(self, address: ServerAddress, statement_cache_size: int | None) -> None:
        self._address = address
        self._hosts = list(address.hosts)
        self._options = (
            {} if statement_cache_size is None else {"statement_cache_size": statement_cache_size}
        )

    async def connect(self, **_bare: object) -> Any:
        """Return a connection of the driver; raises ConnectionError that names all hosts."""
        if not self._hosts:
            return await self._connect(None, None, self._address.target)
        if len(self._hosts) == 1:
            return await self._connect(*self._hosts[0], self._address.target)
        failures = []
        for target, host, port in self._list_tries():
            try:
                connection = await self._connect(host, port, target)
            except Exception as error:  # noqa: BLE001 - whatever is wrong with a host, another may serve
                failures.append(f"{host}:{port}: {_describe(error, target)}")
            else:
                self._hosts.remove((host, port))
                self._hosts.insert(0, (host, port))
                return connection
        raise ConnectionError(f"no host can be used: {'; '.join(failures)}")

    def _list_tries(self) -> Iterator[tuple[str, str, int]]:
        target = self._address.target
        targets = ("standby", "any") if target == "prefer-standby" else (target,)
        hosts = tuple(self._hosts)
        return ((each, host, port) for each in targets for host, port in hosts)

    async def _connect(self, host: str | None, port: int | None, target: str) -> Any:
        from asyncpg import connect  # it is an extra, and slow to import

        address = self._address
        return await connect(
            address.dsn,
            host=host,
            port=port,
            user=address.user,
            password=address.password,
            database=address.database or None,
            target_session_attrs=target,
            timeout=address.connect_seconds,
            command_timeout=SCHEMA_CHANGE_SECONDS,
            **self._options,
        )


def _describe(error: Exception, target: str) -> str:
    if isinstance(error, TimeoutError):
        return "no response"
    if type(error).__name__ == "TargetServerAttributeNotMatched":
        return f"not {target}"
    return str(error) or repr(error)


def make_engine(
    address: ServerAddress, limits: Mapping[str, str], *, shares_sessions: bool = False, **pool: Any
) -> AsyncEngine:
    """Return an engine whose sessions have the limits.

    With `shares_sessions`, a pooler in transaction mode is in between. Sessions then have their
    limits from the server, and statements are not prepared, since PgBouncer before 1.21 loses them.
    """
    cached = address.cached_statements
    if shares_sessions and cached is None:
        cached = 0
    # an unnamed statement lives until the next one, and belongs to the transaction
    names = {"prepared_statement_name_func": str} if cached == 0 else {}
    sizes = {} if cached is None else {"prepared_statement_cache_size": cached}
    try:
        engine = create_async_engine(
            address.bare_url,
            **pool,
            connect_args={
                "async_creator_fn": HostSelector(address, cached).connect,
                **sizes,
                **names,
            },
            hide_parameters=True,  # they may be secrets, and errors are logged
            json_serializer=dump_json,
            json_deserializer=load_json,
        )
    except ModuleNotFoundError as error:
        raise OperatorError(
            "the PostgreSQL driver is missing; install it with `pip install 'tocsin[postgres]'`"
        ) from error
    limit_sessions(engine, {} if shares_sessions else limits)
    return engine
