"""Accepted pushes, noted in memory and recorded at intervals for the accounting."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import NoReturn

import structlog
from sqlalchemy import Connection

from tocsin.clock import Clock
from tocsin.hookspecs import IntakePosition
from tocsin.incidents.coverage import PUSH_STREAM, StreamKey
from tocsin.incidents.intake.losses import describe_reuse, record_loss
from tocsin.incidents.intake.positions import AcceptedMark, note_accepted
from tocsin.incidents.metrics import SyncMeter
from tocsin.loops import run_forever
from tocsin.store import Database

INTERVAL = timedelta(seconds=10)
_log = structlog.get_logger()


class AcceptedPushes:
    """Notes the last accepted push to each provider, and records it when the database is there."""

    def __init__(self, database: Database, clock: Clock, meter: Callable[[str], SyncMeter]) -> None:
        self._database = database
        self._clock = clock
        self._meter = meter
        self.last: IntakePosition | None = None
        """The highest position that the intake has returned, None before the first one."""
        self._losses: list[tuple[StreamKey, str]] = []
        """What the intake has lost, by provider, and why this is known."""
        self._marks: dict[tuple[str, str], AcceptedMark] = {}
        """By provider and stream."""
        self._writing = asyncio.Lock()

    def add(
        self,
        provider: str,
        position: IntakePosition,
        received_at: datetime,
        before: IntakePosition | None,
    ) -> None:
        """Note an accepted push.

        `before` is the value of `last` when the push was published, or None if the push has a key
        of its sender, because the intake may then return the position of an earlier push. If the
        position of the new push is not after `before`, the intake has lost pushes.
        """
        self._find_loss(provider, position, before)
        key = provider, position.stream
        known = self._marks.get(key)
        if known is None:
            self._marks[key] = AcceptedMark(provider, position, received_at)
        elif position.sequence > known.position.sequence:
            self._marks[key] = AcceptedMark(provider, position, known.since)

    def _find_loss(
        self, provider: str, position: IntakePosition, before: IntakePosition | None
    ) -> None:
        last = self.last
        if last is None or position.stream != last.stream or position.sequence > last.sequence:
            self.last = position
        elif before is not None and position.sequence <= before.sequence <= last.sequence:
            self.last = position
            reason = describe_reuse(last, position)
            self._losses.append((StreamKey(provider, PUSH_STREAM), reason))
            _log.error("accepted pushes lost", provider=provider, reason=reason)

    async def run(self) -> NoReturn:
        """Record what is noted until cancelled; call `flush` afterwards for the rest."""
        await run_forever(self.flush, self._clock, "accepted push recorder", pause=INTERVAL)

    async def flush(self) -> None:
        """Record all notes; after an error they are kept."""
        # a started write is completed, or it would be unknown what was written
        await asyncio.shield(self._flush())

    async def _flush(self) -> None:
        async with self._writing:
            marks, losses = self._marks, self._losses
            if not marks and not losses:
                return
            self._marks, self._losses = {}, []
            try:
                early = await self._database.write(self._record, list(marks.values()), losses)
            except BaseException:
                self._keep(marks.values())
                self._losses = losses + self._losses
                raise
            self._keep(early)
            for key, _ in losses:
                self._meter(key.provider).count_lost(1)

    def _record(
        self,
        connection: Connection,
        marks: Sequence[AcceptedMark],
        losses: Sequence[tuple[StreamKey, str]],
    ) -> list[AcceptedMark]:
        """Record marks and losses; return the marks to record later."""
        now = self._clock.now()
        for key, reason in losses:
            record_loss(connection, key, reason, now)
        return note_accepted(connection, marks, now)

    def _keep(self, marks: Iterable[AcceptedMark]) -> None:
        """Note marks that are not recorded yet, with what was noted meanwhile."""
        for mark in marks:
            key = mark.provider, mark.position.stream
            later = self._marks.get(key, mark)
            last = max(later.position.sequence, mark.position.sequence)
            position = IntakePosition(mark.position.stream, last)
            self._marks[key] = AcceptedMark(mark.provider, position, mark.since)
