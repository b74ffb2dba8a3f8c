"""Accepted pushes, noted in memory and recorded at intervals for the accounting."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NoReturn

from tocsin.clock import Clock
from tocsin.hookspecs import IntakePosition
from tocsin.incidents.intake.positions import AcceptedMark, note_accepted
from tocsin.loops import run_forever
from tocsin.store import Database

INTERVAL = timedelta(seconds=10)


class AcceptedPushes:
    """Notes the last accepted push to each provider, and records it when the database is there."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._marks: dict[tuple[str, str], AcceptedMark] = {}
        """By provider and stream."""
        self._writing = asyncio.Lock()

    def add(self, provider: str, position: IntakePosition, received_at: datetime) -> None:
        """Note an accepted push."""
        key = provider, position.stream
        known = self._marks.get(key)
        if known is None:
            self._marks[key] = AcceptedMark(provider, position, received_at)
        elif position.sequence > known.position.sequence:
            self._marks[key] = AcceptedMark(provider, position, known.since)

    async def run(self) -> NoReturn:
        """Record what is noted until cancelled; call `flush` afterwards for the rest."""

        async def step() -> None:
            await self.flush()
            await self._clock.sleep(INTERVAL)

        await run_forever(step, self._clock, "accepted push recorder")

    async def flush(self) -> None:
        """Record all notes; after an error they are kept."""
        # a started write is completed, or it would be unknown what was written
        await asyncio.shield(self._flush())

    async def _flush(self) -> None:
        async with self._writing:
            marks = self._marks
            if not marks:
                return
            self._marks = {}
            try:
                early = await self._database.write(
                    note_accepted, list(marks.values()), self._clock.now()
                )
            except BaseException:
                self._keep(marks.values())
                raise
            self._keep(early)

    def _keep(self, marks: Iterable[AcceptedMark]) -> None:
        """Note marks that are not recorded yet, with what was noted meanwhile."""
        for mark in marks:
            key = mark.provider, mark.position.stream
            later = self._marks.get(key, mark)
            last = max(later.position.sequence, mark.position.sequence)
            position = IntakePosition(mark.position.stream, last)
            self._marks[key] = AcceptedMark(mark.provider, position, mark.since)
