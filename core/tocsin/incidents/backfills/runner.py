"""Backfill runner."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import structlog
from sqlalchemy import Connection, RowMapping, Select, and_, or_, select

from tocsin.clock import isoformat
from tocsin.errors import Misconfigured, Refused, TryLater
from tocsin.hookspecs import Capability
from tocsin.incidents.backfills.records import (
    Backfill,
    BackfillAdvance,
    BackfillEnded,
    BackfillOrigin,
    BackfillProgress,
    BackfillState,
    advance_backfill,
    create_backfill,
    end_backfill,
    load_next_backfill,
    postpone_backfill,
    shorten_backfill,
)
from tocsin.incidents.coverage import (
    Loss,
    StreamKey,
    iter_overlaps,
    list_losses,
    load_covered_until,
    merge_spans,
)
from tocsin.incidents.failures import classify_failure
from tocsin.incidents.storage import StoreResult, store_received
from tocsin.incidents.writer import IncidentWriter
from tocsin.loops import was_cancelled
from tocsin.model import Page, Window
from tocsin.plugin_results import iterate_pages
from tocsin.store import LeaseLost
from tocsin.store.tables import backfills

RETRIES = tuple(timedelta(minutes=minutes) for minutes in (1, 10, 60, 360, 1440))
"""The pause after each consecutive failure; after the last one, the backfill has failed."""
DEFAULT_LATENESS = timedelta(minutes=1)
"""How late a provider that is not time-based may show an incident."""
MISCONFIGURED_PAUSE = timedelta(hours=1)
"""The pause after wrong settings or credentials: frequent attempts could lock the account."""
_log = structlog.get_logger()


class BackfillRunner:
    """Runs the backfills of one provider, one after the other."""

    def __init__(self, writer: IncidentWriter) -> None:
        self._writer = writer
        self._provider = writer.provider
        self._database = writer.database
        self._clock = writer.clock
        self.current: datetime | None = None
        """The start of the last round in which every stream was read to its end."""

    async def work(self, until: datetime | None = None) -> None:
        """Run due backfills until none is left or `until` is reached.

        At least one page is read where a backfill is due.
        """
        while backfill := await self._database.read(
            load_next_backfill, self._writer.name, self._clock.now(), self.current
        ):
            try:
                await self._try(backfill, until)
            except LeaseLost as error:
                _log.info("backfill continued by another node", reason=str(error))
                return
            if self._is_time(until):
                return

    def _is_time(self, until: datetime | None) -> bool:
        return until is not None and self._clock.now() >= until

    async def _try(self, backfill: Backfill, until: datetime | None) -> None:
        if Capability.BACKFILL not in self._provider.capabilities():
            await self._end(backfill, BackfillState.FAILED, "the plugin does not support backfills")
            return
        try:
            is_done = await self._read(backfill, until)
        except BackfillEnded:
            return
        except LeaseLost:
            raise
        except Exception as error:
            if was_cancelled():
                raise
            with suppress(BackfillEnded):
                await self._put_off(backfill, error)
        else:
            if is_done:
                await self._end(backfill, BackfillState.COMPLETED)

    async def _read(self, backfill: Backfill, until: datetime | None) -> bool:
        """Return whether every stream was read to the end of the window."""
        progress, window = BackfillProgress.of(backfill), await self._narrow(backfill)
        for stream in self._provider.streams():
            if stream not in progress.done and window.start < window.end:
                asked = stream, progress.at.get(stream), window
                reading = iterate_pages(self._provider.backfill, backfill.provider, *asked)
                if not await self._store_all(backfill, stream, reading, progress, until):
                    return False
                progress.done.append(stream)
        return True

    async def _narrow(self, backfill: Backfill) -> Window:
        """Return the window to read; a quiet backfill excludes what the sync has not read yet.

        The backfill would store such incidents first, and they would never be alerted.
        """
        start, end = backfill.window.start, backfill.window.end
        covered = await self._database.read(load_covered_until, backfill.provider)
        latest = covered or self.current
        if backfill.alert or latest is None:
            return backfill.window
        window = Window(start, max(start, min(end, latest - self._lateness)))
        if window.end < end:
            now = self._clock.now()
            await self._database.write(shorten_backfill, backfill, window.end, now)
        return window

    @property
    def _lateness(self) -> timedelta:
        late: timedelta = getattr(self._provider.settings, "overlap", DEFAULT_LATENESS)
        return late

    async def _store_all(
        self,
        backfill: Backfill,
        stream: str,
        reading: AsyncGenerator[Page, None],
        progress: BackfillProgress,
        until: datetime | None,
    ) -> bool:
        """Return whether the stream was read to its end, rather than up to `until`."""
        async with aclosing(reading) as pages:
            async for page in pages:
                progress.at[stream] = page.next_position
                await self._store(backfill, stream, page, progress)
                if self._is_time(until):
                    return False
        return True

    async def _store(
        self, backfill: Backfill, stream: str, page: Page, progress: BackfillProgress
    ) -> None:
        key = StreamKey(backfill.provider, stream)
        policy = replace(self._writer.policy, quiet=not backfill.alert)

        def store(connection: Connection, now: datetime, reserved: Sequence[int]) -> StoreResult:
            stored = store_received(
                connection, key, page, policy=policy, now=now, past=True, reserved=reserved
            )
            done = BackfillAdvance(progress, stored.counts, _find_reached(page))
            advance_backfill(connection, backfill, done, now)
            return stored

        await self._writer.write(page.incidents, store)

    async def _put_off(self, backfill: Backfill, error: Exception) -> None:
        failure, now = classify_failure(error), self._clock.now()
        if isinstance(error, Misconfigured):  # not a failure of the backfill
            failures, pause = backfill.failures, MISCONFIGURED_PAUSE
        elif isinstance(error, Refused) or backfill.failures >= len(RETRIES):
            await self._end(backfill, BackfillState.FAILED, failure.reason)
            return
        else:
            failures, pause = backfill.failures + 1, RETRIES[backfill.failures]
        if isinstance(error, TryLater) and error.after is not None:
            pause = max(pause, error.after)
        due_at = now + pause
        await self._database.write(
            postpone_backfill, backfill, failure.reason, failures=failures, due_at=due_at, now=now
        )
        facts = {"provider": backfill.provider, "backfill": backfill.id, "reason": failure.reason}
        _log.warning("backfill postponed", **facts, again_at=isoformat(due_at))

    async def _end(
        self, backfill: Backfill, state: BackfillState, reason: str | None = None
    ) -> None:
        await self._database.write(end_backfill, backfill.id, state, self._clock.now(), reason)
        facts = {"provider": backfill.provider, "backfill": backfill.id}
        facts |= {"reason": reason} if reason else {}
        level = "info" if state is BackfillState.COMPLETED else "warning"
        getattr(_log, level)("backfill ended", state=state.value, **facts)


def _find_reached(page: Page) -> datetime | None:
    ends = [covered.end for covered in page.covered if isinstance(covered.end, datetime)]
    return max(ends, default=None)


RETRY_WINDOW = timedelta(days=30)
"""How old a loss can be and still be retried automatically."""
MAX_TRIES = 6
"""How often a loss is retried automatically; after that, operators can still retry it."""
MAX_WINDOWS = 100
"""How many retry backfills are created at once."""


def find_untried_losses(
    connection: Connection, provider: str, streams: Sequence[str], now: datetime
) -> list[Window]:
    """Return the losses that were not retried yet, as merged windows."""
    since = now - RETRY_WINDOW
    lost = list_losses(connection, provider, streams, since)
    if not lost:
        return []
    wanted = _filter_untried(
        lost, connection.execute(_select_tries(provider, since)).mappings().all()
    )
    return [Window(start, end) for start, end in merge_spans(wanted)][:MAX_WINDOWS]


def _select_tries(provider: str, since: datetime) -> Select[Any]:
    """Return the query of the backfills that count as retries; failed ones of operators do not."""
    c = backfills.c
    failed = and_(c.state == BackfillState.FAILED, c.origin == BackfillOrigin.LOST)
    tried = or_(c.state.in_((BackfillState.RUNNING, BackfillState.COMPLETED)), failed)
    return select(c.start, c.end, c.created_at).where(
        c.provider == provider, c.created_at >= since, tried
    )


def _filter_untried(
    lost: Iterable[Loss], tries: Iterable[RowMapping]
) -> Iterator[tuple[datetime, datetime]]:
    """Yield the bounds of losses without a retry since, and with few retries before."""
    losses = ((loss.window.start, loss.window.end, loss) for loss in lost)
    windows = ((row["start"], row["end"], row) for row in tries)
    for loss, nearby in iter_overlaps(losses, windows):
        start, end = loss.window.start, loss.window.end
        containing = (row for row in nearby if row["start"] <= start and end <= row["end"])
        tried = [row["created_at"] for row in containing]
        if len(tried) < MAX_TRIES and all(moment < loss.lost_at for moment in tried):
            yield start, end


def create_retry_backfills(
    connection: Connection, provider: str, windows: Iterable[Window], now: datetime
) -> None:
    """Create a backfill for each lost window."""
    for window in windows:
        create_backfill(
            connection,
            provider,
            window,
            alert=True,
            origin=BackfillOrigin.LOST,
            by="tocsin",
            now=now,
        )
