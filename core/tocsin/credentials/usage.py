"""Last use of credentials, collected in memory and written once a minute."""

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
    """Collects uses from any thread and writes the last use of each credential."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._uses: dict[tuple[str, str], datetime] = {}
        self._lock = Lock()

    def note(self, kind: str, identifier: str) -> None:
        """Record a use of a credential; `kind` is `key` or `client`."""
        with self._lock:
            self._uses[kind, identifier] = self._clock.now()

    async def flush(self) -> None:
        """Write the collected uses; if that fails, keep them for the next time."""
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
        """Write the collected uses once a minute until cancelled."""
        await run_forever(self._step, self._clock, "credential usage")

    async def _step(self) -> None:
        await self._clock.sleep(EVERY)
        await self.flush()


def _write(connection: Connection, uses: _Uses) -> None:
    """Write in the order of IDs, so that two nodes cannot deadlock."""
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
