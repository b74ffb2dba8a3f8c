"""Compaction of ledgers: the steps of runs that have ended are compressed together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta

from sqlalchemy import Connection, select

from tocsin.clock import Clock
from tocsin.events import Notifier
from tocsin.investigations.runs.completion import FinishedRun
from tocsin.investigations.sessions import ACTIVE_STATUSES, compact_steps
from tocsin.loops import SILENCE, beat, run_forever
from tocsin.store import Database
from tocsin.store.tables import session_steps, sessions

_HOUR = timedelta(hours=1)
_BATCH = 20


class LedgerCompaction:
    """Compacts the ledgers of sessions when they end, and once an hour those that are left.

    Those are from before there was compaction, of nodes that stopped, and of cancelled sessions.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._notifier = Notifier()
        self._ended: list[str] = []
        self._examine_at = clock.now()

    def finish(self, _: Connection, run: FinishedRun) -> Callable[[], None]:
        """Compact the ledger of a session after its run has ended."""

        def follow() -> None:
            self._ended.append(run.session_id)
            self._notifier.notify()

        return follow

    async def run(self) -> None:
        """Compact ledgers until cancelled."""
        await run_forever(self._step, self._clock, "ledger compaction", silence=_HOUR + SILENCE)

    async def _step(self) -> None:
        while self._ended:
            await self.compact(self._ended[0])
            del self._ended[0]
        if self._clock.now() >= self._examine_at:
            await self.compact_all()
            self._examine_at = self._clock.now() + _HOUR
        beat()
        await self._notifier.wait(_HOUR)

    async def compact_all(self) -> None:
        """Compact the ledgers of all sessions that have ended."""
        after = ""
        while found := await self._database.read(_find_sessions, after):
            for session_id in found:
                await self.compact(session_id)
            after = found[-1]

    async def compact(self, session_id: str) -> None:
        """Compact the ledger of a session, unless it runs, one chunk per transaction."""
        while await self._database.write_behind(_compact, session_id):
            beat()


def _find_sessions(connection: Connection, after: str) -> Sequence[str]:
    """Return the next sessions that have ended with steps that are stored one by one."""
    s = session_steps.c
    query = (
        select(s.session_id)
        .join(sessions, sessions.c.id == s.session_id)
        .where(s.session_id > after, s.steps.is_(None), sessions.c.status.not_in(ACTIVE_STATUSES))
        .distinct()
        .order_by(s.session_id)
        .limit(_BATCH)
    )
    return connection.scalars(query).all()


def _compact(connection: Connection, session_id: str) -> bool:
    """Compact one chunk, and return whether there may be more."""
    status = select(sessions.c.status).where(sessions.c.id == session_id).with_for_update()
    if connection.scalar(status) in (None, *ACTIVE_STATUSES):
        return False
    return compact_steps(connection, session_id)
