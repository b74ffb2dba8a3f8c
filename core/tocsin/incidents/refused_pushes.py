"""Refused pushes, counted in memory and recorded in intervals, so that attacks cause few writes."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NoReturn

import structlog
from sqlalchemy import Connection

from tocsin.clock import Clock
from tocsin.incidents.coverage import PUSH_STREAM, ReadFailure, StreamKey, record_failure
from tocsin.loops import run_forever
from tocsin.store import Database, load_database_time

INTERVAL = timedelta(seconds=10)
_log = structlog.get_logger()


class PushRefusal(StrEnum):
    """Why a push was refused."""

    TOO_LARGE = "too-large"
    TOO_SLOW = "too-slow"
    CREDENTIALS = "credentials-refused"
    MEDIA_TYPE = "media-type"
    NOT_PARSED = "refused"
    KEY_REUSED = "key-reused"
    STOPPED = "stopped"
    SUSPENDED = "suspended"
    TOO_MANY = "too-many"
    """The sender repeats the push, so nothing is lost, and nothing has to be recorded."""


_REASONS = {
    PushRefusal.TOO_LARGE: "the body was larger than the provider's max_body_mib",
    PushRefusal.TOO_SLOW: "the body did not arrive in time",
    PushRefusal.CREDENTIALS: "the token or signature was wrong",
    PushRefusal.MEDIA_TYPE: "the Content-Type was not application/json",
    PushRefusal.NOT_PARSED: "the payload could not be parsed; it is quarantined",
    PushRefusal.KEY_REUSED: "the Idempotency-Key was used for another push",
    PushRefusal.STOPPED: "the provider was disabled; the sender was asked to retry",
    PushRefusal.SUSPENDED: "a node's clock was too far off; the sender was asked to retry",
    PushRefusal.TOO_MANY: "too many pushes at once; the sender was asked to retry",
}
_Counts = Counter[tuple[str, PushRefusal]]
"""Numbers of pushes by provider and refusal."""


class RefusedPushes:
    """Counts refused pushes by provider and kind, and records them as failed reads."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._counts: _Counts = Counter()
        self._writing = asyncio.Lock()

    def add(self, provider: str, refusal: PushRefusal) -> None:
        """Count a refused push."""
        self._counts[provider, refusal] += 1

    async def run(self) -> NoReturn:
        """Record what is counted until cancelled; call `flush` afterwards for the rest."""
        await run_forever(self.flush, self._clock, "refused push recorder", pause=INTERVAL)

    async def flush(self) -> None:
        """Log and record all counts; after an error they are kept."""
        # a started write is completed, or it would be unknown which counts were written
        await asyncio.shield(self._flush())

    async def _flush(self) -> None:
        async with self._writing:
            counts = self._counts.copy()
            if not counts:
                return
            await self._database.write(_record, PUSH_STREAM, counts, self._clock.now())
            self._counts -= counts
        for (provider, refusal), count in counts.items():
            _log.warning(
                "pushes refused",
                provider=provider,
                outcome=refusal.value,
                reason=_REASONS[refusal],
                count=count,
            )


def _record(connection: Connection, stream: str, counts: _Counts, now: datetime) -> None:
    for (provider, refusal), count in counts.items():
        if refusal is PushRefusal.TOO_MANY:
            continue
        key, failure = StreamKey(provider, stream), ReadFailure(refusal.value, _REASONS[refusal])
        # the clock of a suspended node is wrong
        time = load_database_time(connection) if refusal is PushRefusal.SUSPENDED else None
        record_failure(connection, key, failure, time or now, continues=True, times=count)
