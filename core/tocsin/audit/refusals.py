"""Refusals, counted in memory and written once a minute: an attack is to cost no writes."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from threading import Lock
from typing import NamedTuple, NoReturn

import structlog

from tocsin.audit.log import AuditRecord, record
from tocsin.clock import Clock, isoformat
from tocsin.loops import run_forever
from tocsin.store import Database

ACTION = "refused"
ELSEWHERE = "elsewhere"
MAX_PER_MINUTE = 1_000  # distinct pairs of address and reason
MAX_PENDING = 10_000  # of all minutes, while the database is unavailable
_MINUTE = timedelta(minutes=1)
_log = structlog.get_logger()


class _RefusalKey(NamedTuple):
    address: str
    reason: str
    minute: datetime


class Refusals:
    """Counts refusals by address, reason and minute; beyond the limits under `elsewhere`.

    `meter` is called with the reason of each.
    """

    def __init__(self, clock: Clock, meter: Callable[[str], None] = lambda _reason: None) -> None:
        self._clock = clock
        self._meter = meter
        self._lock = Lock()
        self._writing = asyncio.Lock()
        self._counts: Counter[_RefusalKey] = Counter()
        self._told_apart: set[_RefusalKey] = set()
        self._minute = self._this_minute()

    def count(self, address: str, reason: str) -> None:
        """Count one refusal; callable from any thread."""
        self._meter(reason)
        with self._lock:
            self._counts[self._place(address, reason)] += 1

    def _place(self, address: str, reason: str) -> _RefusalKey:
        minute = self._this_minute()
        if minute != self._minute:
            self._minute = minute
            self._told_apart.clear()
        refused = _RefusalKey(address, reason, minute)
        if refused not in self._told_apart:
            if len(self._told_apart) >= MAX_PER_MINUTE or len(self._counts) >= MAX_PENDING:
                return _RefusalKey(ELSEWHERE, reason, minute)
            self._told_apart.add(refused)
        return refused

    def _this_minute(self) -> datetime:
        return self._clock.now().replace(second=0, microsecond=0)

    async def run(self, database: Database) -> NoReturn:
        """Write once a minute until cancelled; call `flush` afterwards for the rest."""
        step = partial(self.flush, database)
        await run_forever(step, self._clock, "refusal audit", pause=_MINUTE)

    async def flush(self, database: Database) -> None:
        """Write all counts, including the current minute; after an error they are kept."""
        # a started write is completed, or it would be unknown which counts were written
        await asyncio.shield(self._flush(database))

    async def _flush(self, database: Database) -> None:
        async with self._writing:
            with self._lock:
                counts = self._counts.copy()
            if counts:
                now = self._clock.now()
                await database.write(record, *(_build_entry(now, *item) for item in counts.items()))
                _log_counts(counts)
            with self._lock:
                self._counts -= counts


def _log_counts(counts: Counter[_RefusalKey]) -> None:
    """Log one line for each reason, with the address that was refused most often."""
    for reason in sorted({refused.reason for refused in counts}):
        by_address: Counter[str] = Counter()
        for refused, count in counts.items():
            if refused.reason == reason:
                by_address[refused.address] += count
        _log.warning(
            "requests refused",
            reason=reason,
            count=by_address.total(),
            addresses=len(by_address),
            most_from=by_address.most_common(1)[0][0],
        )


def _build_entry(now: datetime, refused: _RefusalKey, count: int) -> AuditRecord:
    return AuditRecord(
        at=now,
        actor="",
        action=ACTION,
        address=refused.address,
        request_id="",
        details={"reason": refused.reason, "minute": isoformat(refused.minute)},
        count=count,
    )
