"""Gate that prevents reads of a provider under an emergency stop."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

import structlog
from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from tocsin.clock import Clock
from tocsin.events import Notifier
from tocsin.incidents.coverage import ReadFailure, StreamKey, record_failure
from tocsin.loops import beat, raise_if_cancelled
from tocsin.stops import EmergencyStop, StopKind, find_stop
from tocsin.store import Database

POLL = timedelta(seconds=2)
"""How long it can take until this node notices a stop that another node has stored."""
LEDGER_INTERVAL = timedelta(minutes=1)
"""How often the ledger records that a provider is still stopped."""
STOPPED = "stopped"
"""The outcome in the coverage ledger of reads that a stop prevents."""
_log = structlog.get_logger()


class StopGate:
    """Ends the reads of one provider when it is stopped, and waits for the end of the stop."""

    def __init__(self, provider: str, database: Database, clock: Clock, notifier: Notifier) -> None:
        self._provider = provider
        self._database = database
        self._clock = clock
        self._notifier = notifier

    async def find_stop(self) -> EmergencyStop | None:
        """Return the stop that is in force, None without one."""
        now = self._clock.now()
        stop = await self._database.lookup(find_stop, StopKind.PROVIDER, self._provider, now)
        raise_if_cancelled()
        return stop

    async def wait_until_open(self, streams: Sequence[str]) -> None:
        """Return at once, or at the end of a stop; until then, the ledger names the stop."""
        recorded_at = None
        while (stop := await self.find_stop()) is not None:
            now = self._clock.now()
            if recorded_at is None:
                _log.warning("provider disabled", provider=self._provider, stop=stop.describe())
            if recorded_at is None or now - recorded_at >= LEDGER_INTERVAL:
                recorded_at = now
                await self._database.write(self._record, stop, streams)
            beat()
            await self._notifier.wait(POLL)
        if recorded_at is not None:
            _log.info("provider enabled", provider=self._provider)

    def _record(self, connection: Connection, stop: EmergencyStop, streams: Sequence[str]) -> None:
        failure = ReadFailure(STOPPED, f"disabled {stop.describe()}")
        for stream in streams:
            key = StreamKey(self._provider, stream)
            record_failure(connection, key, failure, self._clock.now(), continues=True)

    async def run_while_open(self, work: Coroutine[Any, Any, None]) -> None:
        """Run until the provider is stopped, which cancels the work, or until the work fails."""
        working, watching = asyncio.create_task(work), asyncio.create_task(self._wait_for_stop())
        try:
            await asyncio.wait({working, watching}, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                await working
        finally:
            for task in (working, watching):
                task.cancel()
            await asyncio.wait({working, watching})

    async def _wait_for_stop(self) -> None:
        while True:
            with suppress(SQLAlchemyError, OSError):  # reading cannot store anything either
                if await self.find_stop() is not None:
                    return
            await self._notifier.wait(POLL)
