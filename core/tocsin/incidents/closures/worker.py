"""Worker that closes incidents at their SIEMs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from functools import partial
from itertools import product

import structlog
from sqlalchemy import Connection

from tocsin.clock import Clock, isoformat
from tocsin.hookspecs import Provider
from tocsin.incidents.closures.repository import (
    Closure,
    ClosureState,
    cancel_closure,
    claim_closure,
    has_due_closure,
    plan_closure,
    settle_closure,
)
from tocsin.incidents.resolutions import apply_resolution
from tocsin.incidents.siem_writes import LATE_WRITE, WRITE_TIMEOUT, plan_retry
from tocsin.loops import (
    PLUGIN_FAILURES,
    SILENCE,
    Loop,
    describe_plugin_failure,
    run_forever,
    was_cancelled,
)
from tocsin.metrics import Metrics
from tocsin.model import IncidentStatus, RemoteResolution
from tocsin.store import Database

_LEASE = 2 * WRITE_TIMEOUT
_PAUSE = timedelta(seconds=10)
OUTCOMES = ("written", "later", "failed")
_log = structlog.get_logger()


class TicketClosures:
    """Applies what people decided in tickets: dispositions, and closures at the SIEM.

    Only providers with `close_from_tickets` are written to. A status that is set already is not
    written again, so that a node that is killed repeats nothing.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        providers: Mapping[str, Provider],
        public_url: str,
        metrics: Metrics,
    ) -> None:
        """Take the providers; the mapping may change later."""
        self._database = database
        self._clock = clock
        self._providers = providers
        self._public_url = public_url
        self._attempts = metrics.counter(
            "tocsin_siem_closures_total",
            "Attempts, by outcome, to close an incident in the SIEM after its ticket was closed",
            "provider",
            "outcome",
        )

    def apply(self, connection: Connection, resolution: RemoteResolution, now: datetime) -> None:
        """Apply a resolution to its incident, and plan or cancel its closure at the SIEM."""
        apply_resolution(connection, resolution, now, public_url=self._public_url)
        if resolution.is_closed:
            closing = {name for name, each in self._providers.items() if _closes(each)}
            plan_closure(connection, resolution, closing, now)
        else:
            cancel_closure(connection, resolution.incident_number)

    def make_loops(self, providers: Iterable[Provider]) -> dict[str, Loop]:
        """Return the loops that close incidents of these providers, by their names."""
        closing = [provider for provider in providers if _closes(provider)]
        for provider, outcome in product(closing, OUTCOMES):  # start at 0
            self._attempts.labels(provider.tools.name, outcome)
        return {
            f"closures {provider.tools.name}": partial(
                run_forever,
                partial(self._step, provider),
                self._clock,
                "incident closer",
                silence=WRITE_TIMEOUT + _PAUSE + SILENCE,
                provider=provider.tools.name,
            )
            for provider in closing
        }

    async def _step(self, provider: Provider) -> None:
        if not await self.close_next(provider):
            await self._clock.sleep(_PAUSE)

    async def close_next(self, provider: Provider) -> bool:
        """Close the next incident that is due; return whether that was possible."""
        name, now = provider.tools.name, self._clock.now()
        if not await self._database.lookup(has_due_closure, name, now):
            return False
        held = await self._database.write(claim_closure, name, now, now + _LEASE)
        if held is None:
            return False
        try:
            async with asyncio.timeout(WRITE_TIMEOUT.total_seconds()):
                await provider.set_status(held.external_id, IncidentStatus.CLOSED)
        except PLUGIN_FAILURES as error:
            if was_cancelled():
                raise
            await self._fail(name, held, error)
            return False
        done = {"state": ClosureState.WRITTEN, "reason": None}
        await self._database.write(settle_closure, held, self._clock.now(), **done)
        self._attempts.labels(name, "written").inc()
        return True

    async def _fail(self, provider: str, held: Closure, error: BaseException) -> None:
        reason, now = describe_plugin_failure(error, late=LATE_WRITE), self._clock.now()
        facts = {"provider": provider, "incident": held.incident_number, "reason": reason}
        retry = plan_retry(error, held.failures)
        self._attempts.labels(provider, "failed" if retry is None else "later").inc()
        if retry is None:
            failed = {"state": ClosureState.FAILED, "failures": held.failures + 1, "reason": reason}
            await self._database.write(settle_closure, held, now, **failed)
            _log.warning("incident not closed", **facts)
            return
        due_at = now + retry.delay
        later = {"failures": retry.failures, "reason": reason, "due_at": due_at}
        await self._database.write(settle_closure, held, now, **later)
        _log.warning("closure postponed", **facts, again_at=isoformat(due_at))


def _closes(provider: Provider) -> bool:
    return bool(provider.settings.close_from_tickets)
