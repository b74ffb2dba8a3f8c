"""Worker that writes comments and statuses to incidents at their SIEMs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from datetime import timedelta
from functools import partial

import structlog

from tocsin.clock import Clock, isoformat
from tocsin.hookspecs import Capability, Provider
from tocsin.incidents import LATE_WRITE, WRITE_TIMEOUT, plan_retry
from tocsin.investigations.write_backs.repository import (
    WriteBack,
    WriteBackState,
    claim_write_back,
    finish_write_back,
    is_incident_new,
    postpone_write_back,
    select_write_back_providers,
)
from tocsin.loops import (
    PLUGIN_FAILURES,
    SILENCE,
    Loop,
    LoopGroup,
    describe_plugin_failure,
    run_forever,
    was_cancelled,
)
from tocsin.metrics import Metrics
from tocsin.model import IncidentStatus
from tocsin.store import Database

LEASE = 2 * WRITE_TIMEOUT
"""Duration of a claim; longer than an attempt, so that two nodes never write a comment."""
PAUSE = timedelta(seconds=5)
"""Pause after nothing was due or an attempt failed."""
_AFTER = "comment written, status not set"
OUTCOMES = ("written", "later", "failed")
_log = structlog.get_logger()


class WriteBackMetrics:
    """Counts the comments that this node writes; does nothing without metrics."""

    def __init__(self, metrics: Metrics | None = None) -> None:
        self._counter = None
        if metrics is not None:
            self._counter = metrics.counter(
                "tocsin_write_backs_total",
                "Attempts to add a comment to an incident in the SIEM, by provider and outcome",
                "provider",
                "outcome",
            )

    def count(self, provider: str, outcome: str, times: int = 1) -> None:
        """Count attempts with this outcome."""
        if self._counter is not None:
            self._counter.labels(provider, outcome).inc(times)


class WriteBackWorker:
    """Writes due comments to the providers with write-back.

    A comment has an idempotency key, and a status is set only while the incident is New: a node
    that is killed between the two leads to a repetition, never to a duplicate.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        providers: Mapping[str, Provider],
        meter: WriteBackMetrics | None = None,
        timeout: timedelta = WRITE_TIMEOUT,
    ) -> None:
        """Take all providers; those without write-back are ignored."""
        self._database = database
        self._clock = clock
        self._providers = select_write_back_providers(providers)
        self._meter = meter or WriteBackMetrics()
        self._timeout = timeout
        self._loops = LoopGroup(self._make_loops(self._providers))

    async def run(self) -> None:
        """Write due comments until cancelled; a slow provider does not delay the others."""
        await self._loops.run()

    async def replace(self, providers: Mapping[str, Provider]) -> None:
        """Use other providers from now on; comments of unchanged ones are not interrupted."""
        before, after = self._providers, select_write_back_providers(providers)
        await self._loops.replace(before.keys() - after.keys(), {})
        self._providers = after
        await self._loops.replace((), self._make_loops(after.keys() - before.keys()))

    def _make_loops(self, names: Iterable[str]) -> dict[str, Loop]:
        return {name: self._make_loop(name) for name in names}

    def _make_loop(self, name: str) -> Loop:
        for outcome in OUTCOMES:  # starts at 0, so that the first one shows as an increase
            self._meter.count(name, outcome, 0)
        step, silence = partial(self._step, name), self._timeout + SILENCE
        what = "comment writer"
        return partial(run_forever, step, self._clock, what, silence=silence, provider=name)

    async def _step(self, name: str) -> None:
        if not await self.write_next(name):
            await self._clock.sleep(PAUSE)

    async def write_next(self, name: str) -> bool:
        """Write the next comment that is due at a provider; return whether one was written."""
        now = self._clock.now()
        taken = await self._database.write(claim_write_back, name, now, now + LEASE)
        if taken is None:
            return False
        provider, status = self._providers[name], await self._status_for(taken)
        try:
            async with asyncio.timeout(self._timeout.total_seconds()):
                if Capability.COMMENT in provider.capabilities():
                    await provider.comment(taken.external_id, taken.text, taken.key)
                if status is not None:
                    await _set_status(provider, taken.external_id, status)
        except PLUGIN_FAILURES as error:
            if was_cancelled():
                raise
            await self._fail(taken, error)
            return False
        done = WriteBackState.WRITTEN
        await self._database.write(finish_write_back, taken, done, self._clock.now())
        self._meter.count(name, "written")
        return True

    async def _status_for(self, taken: WriteBack) -> IncidentStatus | None:
        """Return the status to set on the incident, None to leave it unchanged."""
        wanted: IncidentStatus | None = self._providers[taken.provider].settings.write_back_status
        if wanted is None or not await self._database.read(is_incident_new, taken.incident_number):
            return None
        return wanted

    async def _fail(self, taken: WriteBack, error: BaseException) -> None:
        retry = plan_retry(error, taken.failures)
        if retry is None:
            await self._give_up(taken, error)
            return
        reason = describe_plugin_failure(error, late=LATE_WRITE)
        failures, due_at = retry.failures, self._clock.now() + retry.delay
        await self._database.write(
            postpone_write_back, taken, failures=failures, due_at=due_at, reason=reason
        )
        self._meter.count(taken.provider, "later")
        facts = {"provider": taken.provider, "incident": taken.incident_number, "reason": reason}
        _log.warning("comment postponed", **facts, again_at=isoformat(due_at))

    async def _give_up(self, taken: WriteBack, error: BaseException) -> None:
        reason, failed = describe_plugin_failure(error, late=LATE_WRITE), WriteBackState.FAILED
        await self._database.write(finish_write_back, taken, failed, self._clock.now(), reason)
        self._meter.count(taken.provider, "failed")
        facts = {"provider": taken.provider, "incident": taken.incident_number, "reason": reason}
        _log.warning("comment not written", **facts)


async def _set_status(provider: Provider, name: str, status: IncidentStatus) -> None:
    """Set the status of an incident that is still New at its SIEM, if the plugin can check that.

    Somebody may have closed it since it was read: a new status would reopen it.
    """
    try:
        if Capability.REFRESH in provider.capabilities():
            found = await provider.incident(name)
            if found is None or found.status is not IncidentStatus.NEW:
                return
        await provider.set_status(name, status)
    except PLUGIN_FAILURES as error:
        if Capability.COMMENT in provider.capabilities():
            error.add_note(_AFTER)
        raise
