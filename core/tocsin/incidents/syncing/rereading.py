"""Reading new incidents again: what belongs to them may come later than they do."""

from __future__ import annotations

from datetime import datetime, timedelta

import structlog
from sqlalchemy import Connection
from sqlalchemy.exc import InterfaceError, OperationalError

from tocsin.errors import Misconfigured, TryLater
from tocsin.incidents.coverage.positions import StreamKey, Superseded
from tocsin.incidents.storing.intake import Stored, store_received
from tocsin.incidents.storing.rereads import (
    Reread,
    due_rereads,
    end_reread,
    put_off_reread,
)
from tocsin.incidents.syncing.backoff import pause_after
from tocsin.incidents.syncing.writing import Writer
from tocsin.loops import was_cancelled
from tocsin.model import Incident, Received

STREAM = "reread"
MOST = 50
LONGEST = timedelta(seconds=10)
"""So many incidents are read again at once, or for so long: it is soon time to read on."""
_SHORTEST = timedelta(seconds=5)
_SHORTEST_PAUSE = timedelta(minutes=1)
_PATIENCE = timedelta(days=1)
# What says nothing of the one incident that was asked for
_AWAY = (TryLater, Misconfigured, Superseded, OSError, OperationalError, InterfaceError)
_log = structlog.get_logger()


class Rereader:
    """Reads the incidents of one provider again that are due."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._provider = writer.provider
        self._after = writer.policy.reread_after
        self._failures = 0
        self._rests_until: datetime | None = None

    @property
    def interval(self) -> timedelta:
        """How often to look whether any is due."""
        return max(_SHORTEST, self._after[0] / 4) if self._after else timedelta.max

    async def work(self) -> None:
        """Read again what is due; what the SIEM is too busy for stays so."""
        writer = self._writer
        if not self._after:
            return
        now = writer.clock.now()
        if self._rests_until is not None and now < self._rests_until:
            return
        for reread in await writer.database.read(due_rereads, writer.name, MOST, now):
            try:
                await self._store(reread, await self._provider.incident(reread.external_id))
            except Exception as error:
                if was_cancelled():
                    raise
                await self._put_off(reread, error)
                if isinstance(error, _AWAY):
                    self._rest(error)
                    return
            else:
                self._failures = 0
            if writer.clock.now() - now >= LONGEST:
                return

    def _rest(self, error: Exception) -> None:
        """Leave the SIEM alone for as long as a read would that met this error."""
        self._failures += 1
        pause = pause_after([error], self._failures, _SHORTEST_PAUSE)
        self._rests_until = self._writer.clock.now() + pause

    async def _put_off(self, reread: Reread, error: Exception) -> None:
        """Try one that breaks again later; after a day it is left as it is."""
        writer, now = self._writer, self._writer.clock.now()
        facts = {"provider": writer.name, "external_id": reread.external_id}
        _log.warning("an incident could not be read again", **facts, reason=repr(error))
        age = now - reread.created_at
        if age > _PATIENCE + self._after[-1]:
            await self._store(reread, None)
        else:
            due_at = now + max(_SHORTEST_PAUSE, age)
            await writer.database.write(put_off_reread, writer.name, reread, due_at=due_at)

    async def _store(self, reread: Reread, incident: Incident | None) -> None:
        writer = self._writer
        received = Received(incidents=(incident,) if incident else ())

        def store(connection: Connection, now: datetime) -> Stored:
            end_reread(connection, writer.name, reread, self._after)
            key = StreamKey(writer.name, STREAM)
            return store_received(connection, key, received, policy=writer.policy, now=now)

        await writer.write(store)
