"""Sync loop of one provider."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import structlog
from sqlalchemy.exc import SQLAlchemyError

from tocsin.clock import isoformat
from tocsin.errors import Misconfigured, TryLater
from tocsin.hookspecs import Capability, Provider
from tocsin.incidents.backfills import (
    BACKFILLS,
    BackfillRunner,
    create_retry_backfills,
    find_untried_losses,
)
from tocsin.incidents.coverage import ReadFailure, StreamKey, record_failure
from tocsin.incidents.drift import DriftWatch
from tocsin.incidents.failures import SUPERSEDED, classify_failure, log_failure
from tocsin.incidents.metrics import SyncMeter
from tocsin.incidents.sync.lease import hold_lease
from tocsin.incidents.sync.pauses import compute_pause
from tocsin.incidents.sync.refresh import IncidentRefresher
from tocsin.incidents.sync.status import SyncRound, record_round
from tocsin.incidents.sync.stop_gate import StopGate
from tocsin.incidents.sync.stream import StreamReader
from tocsin.incidents.writer import IncidentWriter, SyncContext
from tocsin.loops import (
    PLUGIN_FAILURES,
    beat,
    raise_if_cancelled,
    run_forever,
    was_cancelled,
)
from tocsin.plugin_health import get_plugin_health
from tocsin.stops import TOPIC as STOPS

RETRY_INTERVAL = timedelta(hours=1)
BACKFILL_POLL = timedelta(seconds=5)
"""The poll interval for backfills that another process, such as the CLI, has created."""
STATUS_INTERVAL = timedelta(seconds=10)
"""The interval at which an unchanged status is stored."""
_SILENCE = timedelta(minutes=10)  # a SIEM may take minutes for one page
_log = structlog.get_logger()


class ProviderSync:
    """Sync loop of one provider; its failures do not affect other providers."""

    def __init__(
        self, provider: Provider, context: SyncContext, meter: SyncMeter | None = None
    ) -> None:
        self.name = provider.tools.name
        self._provider = provider
        self._database = context.database
        self._clock = context.clock
        self._node = context.node
        self._jitter = context.jitter
        self._grows_pauses = context.grows_pauses
        self._new_backfill = context.notifiers[BACKFILLS]
        self._writer = IncidentWriter(provider, context, meter or SyncMeter.none())
        self._reader = StreamReader(self._writer)
        self._refresher = IncidentRefresher(self._writer)
        self._backfill_runner = BackfillRunner(self._writer)
        self._drift = DriftWatch(self._writer)
        notifier = context.notifiers[STOPS]
        self._stops = StopGate(self.name, context.database, context.clock, notifier)
        self._failures = 0
        self._failing: set[str] = set()
        self._stored_status: tuple[ReadFailure | None, datetime] | None = None
        self._refilled_at: datetime | None = None
        self._is_away = False

    async def run(self) -> None:
        """Read the provider while this node holds its lease, until cancelled."""
        what = "provider sync"
        await run_forever(self._serve, self._clock, what, silence=_SILENCE, provider=self.name)

    async def _serve(self) -> None:
        async with hold_lease(self._provider, self._database, self._clock, self._node) as lease:
            self._writer.lease = lease
            _log.info("provider lease acquired", provider=self.name, node=str(self._node))
            self._warn_of_retirements()
            try:
                while True:
                    await self._stops.wait_until_open(self._provider.streams())
                    await self._stops.run_while_open(self._read_forever())
            finally:
                get_plugin_health().forget(f"providers.{self.name}")

    async def _read_forever(self) -> None:
        while True:
            await self.step()
            raise_if_cancelled()

    def _warn_of_retirements(self) -> None:
        provider, now = self._provider, self._clock.now()
        for retirement in provider.list_retirements(provider.settings):
            if retirement.is_due(now):
                detail = retirement.describe(now)
                _log.warning("vendor API retirement announced", provider=self.name, detail=detail)

    async def step(self) -> None:
        """Read all streams, then run backfills and refreshes until the next poll.

        A SIEM that is overloaded, or refuses the credentials, gets no backfills either.
        """
        pause = await self.read_all()
        again_at = self._clock.now() + pause
        while (rest := again_at - self._clock.now()) > timedelta(0):
            if rest > pause:  # the clock was set back
                again_at, rest = self._clock.now() + pause, pause
            beat()
            if not self._is_away:
                await self.read_the_past(again_at)
            if self._is_away or not self._refresher.has_more:
                await self._new_backfill.wait(min(rest, self._refresher.interval, BACKFILL_POLL))
            if not self._is_away:
                await self._refresher.work()

    async def read_all(self) -> timedelta:
        """Read every stream once, and return the pause before the next round.

        The pause is zero where a stream has more pages than are read in one round.
        """
        began_at = self._clock.now()
        ended = [await self._try(stream) for stream in self._provider.streams()]
        errors = [end for end in ended if isinstance(end, BaseException)]
        self._is_away = any(isinstance(error, TryLater | Misconfigured) for error in errors)
        if not self._is_away:
            await self._refresher.work()
        self._failures = self._failures + 1 if errors else 0
        if not errors:
            self._writer.meter.note_success(self._clock.now())
        if all(end is True for end in ended):
            self._backfill_runner.current = began_at
        pause = self._pause(errors, has_more=False in ended)
        await self._store_status(errors, pause)
        await self._drift.save()
        return pause

    def _pause(self, errors: Sequence[BaseException], *, has_more: bool) -> timedelta:
        if has_more and not errors:
            return timedelta(0)
        poll: timedelta = self._provider.settings.poll_interval
        failures = self._failures if self._grows_pauses else 0
        pause = compute_pause(errors, failures, poll, jitter=self._jitter())
        if errors:
            again_at = isoformat(self._clock.now() + pause)
            _log.warning("next read delayed", provider=self.name, again_at=again_at)
        return pause

    async def read_the_past(self, until: datetime | None = None) -> None:
        """Run due backfills, including retries of lost intervals, until `until`."""
        now = self._clock.now()
        if not _is_recent(self._refilled_at, now, RETRY_INTERVAL):
            self._refilled_at = now
            if Capability.BACKFILL in self._provider.capabilities():
                await self._refill(now)
        await self._backfill_runner.work(until)

    async def _refill(self, now: datetime) -> None:
        streams = self._provider.streams()
        untried = await self._database.read(find_untried_losses, self.name, streams, now)
        if untried:
            await self._database.write(create_retry_backfills, self.name, untried, now)

    async def _try(self, stream: str) -> bool | BaseException:
        """Read one stream; return whether its end was reached, or the error."""
        began_at = time.monotonic()
        try:
            is_at_end = await self._reader.read(stream)
        except PLUGIN_FAILURES as error:
            if was_cancelled():
                raise
            await self._record(StreamKey(self.name, stream), error, began_at)
            self._failing.add(stream)
            return error
        self._writer.meter.count_read("read")
        if stream in self._failing:
            self._failing.remove(stream)
            _log.info("stream recovered", provider=self.name, stream=stream)
        return is_at_end

    async def _record(self, key: StreamKey, error: BaseException, began_at: float) -> None:
        failure = classify_failure(error)
        stall = get_plugin_health().describe_stalls(began_at)
        if stall is not None and failure.outcome == "later":
            failure = replace(failure, reason=f"{failure.reason}; meanwhile {stall}")
        self._writer.meter.count_read(failure.outcome)
        log_failure(key, failure, error)
        if failure.outcome == SUPERSEDED:
            return
        continues, now = key.stream in self._failing, self._clock.now()
        try:
            await self._database.write(record_failure, key, failure, now, continues=continues)
        except (SQLAlchemyError, OSError) as away:
            _log.warning("coverage not recorded", provider=self.name, reason=str(away))

    async def _store_status(self, errors: Sequence[BaseException], pause: timedelta) -> None:
        """Store the result of the round as the provider's status."""
        failure, now = classify_failure(errors[0]) if errors else None, self._clock.now()
        if self._writer.lease is None or self._is_stored(failure, now):
            return
        ended = SyncRound(
            ended_at=now,
            next_at=now + pause,
            failure=failure,
            failures=self._failures,
            clock_skew=self._provider.clock_skew,
        )
        try:
            await self._database.write(record_round, self._writer.lease, ended)
        except (SQLAlchemyError, OSError) as away:
            _log.warning("sync status not stored", provider=self.name, reason=str(away))
        else:
            self._stored_status = failure, now

    def _is_stored(self, failure: ReadFailure | None, now: datetime) -> bool:
        """Whether this round and the last one succeeded, and the last was stored recently."""
        if failure is not None or self._stored_status is None:
            return False
        stored, at = self._stored_status
        return stored is None and _is_recent(at, now, STATUS_INTERVAL)


def _is_recent(moment: datetime | None, now: datetime, span: timedelta) -> bool:
    """Whether a time is less than `span` ago; False for future times, after a clock change."""
    return moment is not None and timedelta(0) <= now - moment < span
