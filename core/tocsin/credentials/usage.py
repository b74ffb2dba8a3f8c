"""When credentials were last used: noted in memory, written off the requests' path."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from threading import Lock
from typing import NoReturn

from sqlalchemy import Connection, bindparam, or_, update

from tocsin.clock import Clock
from tocsin.loops import run_forever
from tocsin.store import Database
from tocsin.store.tables import api_clients, api_keys

EVERY = timedelta(minutes=1)

_IDENTIFIERS = {"key": api_keys.c.key_id, "client": api_clients.c.client_id}
_Uses = Mapping[tuple[str, str], datetime]


class Usage:
    """Notes uses, from any thread, and writes the last of each credential once a minute."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._uses: dict[tuple[str, str], datetime] = {}
        self._lock = Lock()

    def note(self, kind: str, identifier: str) -> None:
        """Note that the credential, a `key` or a `client`, was used now."""
        with self._lock:
            self._uses[kind, identifier] = self._clock.now()

    async def flush(self) -> None:
        """Write what was noted; where that fails, it is kept for the next time."""
        with self._lock:
            uses, self._uses = self._uses, {}
        if not uses:
            return
        try:
            await self._database.write(_write, uses)
        except BaseException:
            with self._lock:
                self._uses = {**uses, **self._uses}
            raise

    async def run(self) -> NoReturn:
        """Write what was noted, again and again."""
        await run_forever(self._step, self._clock, "noting when credentials were used")

    async def _step(self) -> None:
        await self._clock.sleep(EVERY)
        await self.flush()


def _write(connection: Connection, uses: _Uses) -> None:
    """In the order of identifiers, so that two nodes never wait for each other."""
    for kind, column in _IDENTIFIERS.items():
        rows = [
            {"identifier": identifier, "used_at": used_at}
            for (its_kind, identifier), used_at in sorted(uses.items())
            if its_kind == kind
        ]
        if rows:
            used = column.table.c.last_used_at
            earlier = or_(used.is_(None), used < bindparam("used_at"))
            statement = update(column.table).where(column == bindparam("identifier"), earlier)
            connection.execute(statement.values(last_used_at=bindparam("used_at")), rows)
