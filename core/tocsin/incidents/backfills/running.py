"""Doing backfills, in the time between two reads of a provider."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import replace
from datetime import datetime, timedelta

import structlog
from sqlalchemy import Connection

from tocsin.clock import isoformat
from tocsin.errors import Refused
from tocsin.hookspecs import Capability
from tocsin.incidents.backfills.records import (
    Advance,
    Backfill,
    BackfillState,
    Progress,
    advance_backfill,
    end_backfill,
    next_backfill,
    put_off_backfill,
)
from tocsin.incidents.coverage.positions import StreamKey, Superseded
from tocsin.incidents.storing.intake import Stored, store_received
from tocsin.incidents.syncing.failures import failure_of
from tocsin.incidents.syncing.writing import Writer
from tocsin.loops import was_cancelled
from tocsin.model import Page

RETRIES = tuple(timedelta(minutes=minutes) for minutes in (1, 10, 60, 360, 1440))
"""The wait after each failure in a row; after the last one a backfill has failed."""
_log = structlog.get_logger()


class Backfiller:
    """Does the backfills of one provider, one after the other."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._provider = writer.provider
        self._database = writer.database
        self._clock = writer.clock

    async def work(self, until: datetime | None = None) -> None:
        """Go on with what is due, until there is nothing more or it is `until`.

        One page at least is read, so that a provider with much to read on comes to it as well.
        """
        while backfill := await self._database.read(
            next_backfill, self._writer.name, self._clock.now()
        ):
            await self._try(backfill, until)
            if self._is_time(until):
                return

    def _is_time(self, until: datetime | None) -> bool:
        return until is not None and self._clock.now() >= until

    async def _try(self, backfill: Backfill, until: datetime | None) -> None:
        if Capability.BACKFILL not in self._provider.capabilities():
            await self._end(backfill, BackfillState.FAILED, "its plugin cannot read the past")
            return
        try:
            is_done = await self._read(backfill, until)
        except Superseded:
            return
        except Exception as error:
            if was_cancelled():
                raise
            await self._put_off(backfill, error)
        else:
            if is_done:
                await self._end(backfill, BackfillState.COMPLETED)

    async def _read(self, backfill: Backfill, until: datetime | None) -> bool:
        """Return whether every stream was read to the end of the window."""
        progress = Progress.of(backfill)
        for stream in self._provider.streams():
            if stream not in progress.done:
                if not await self._read_stream(backfill, stream, progress, until):
                    return False
                progress.done.append(stream)
        return True

    async def _read_stream(
        self, backfill: Backfill, stream: str, progress: Progress, until: datetime | None
    ) -> bool:
        """Return whether the stream was read to the end of the window."""
        reading = self._provider.backfill(stream, progress.at.get(stream), backfill.window)
        async with aclosing(reading) as pages:
            async for page in pages:
                progress.at[stream] = page.next_position
                await self._store(backfill, stream, page, progress)
                if self._is_time(until):
                    return False
        return True

    async def _store(self, backfill: Backfill, stream: str, page: Page, progress: Progress) -> None:
        key = StreamKey(backfill.provider, stream)
        policy = replace(self._writer.policy, quiet=not backfill.alert, reread_after=None)

        def store(connection: Connection, now: datetime) -> Stored:
            stored = store_received(connection, key, page, policy=policy, now=now, past=True)
            done = Advance(progress, stored.counts, _reached(page))
            advance_backfill(connection, backfill, done, now)
            return stored

        await self._writer.write(store)

    async def _put_off(self, backfill: Backfill, error: Exception) -> None:
        failure, now = failure_of(error), self._clock.now()
        if isinstance(error, Refused) or backfill.failures >= len(RETRIES):
            await self._end(backfill, BackfillState.FAILED, failure.reason)
            return
        due_at = now + RETRIES[backfill.failures]
        await self._database.write(
            put_off_backfill, backfill, failure.reason, due_at=due_at, now=now
        )
        facts = {"provider": backfill.provider, "backfill": backfill.id, "reason": failure.reason}
        _log.warning("a backfill goes on later", **facts, again_at=isoformat(due_at))

    async def _end(
        self, backfill: Backfill, state: BackfillState, reason: str | None = None
    ) -> None:
        await self._database.write(end_backfill, backfill.id, state, self._clock.now(), reason)
        facts = {"provider": backfill.provider, "backfill": backfill.id, "reason": reason}
        level = "info" if state is BackfillState.COMPLETED else "warning"
        getattr(_log, level)(f"a backfill has {state}", **facts)


def _reached(page: Page) -> datetime | None:
    ends = [covered.end for covered in page.covered if isinstance(covered.end, datetime)]
    return max(ends, default=None)
