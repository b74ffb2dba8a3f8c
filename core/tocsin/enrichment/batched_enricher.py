"""Batched, rate-limited requests to one enricher."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import structlog

from tocsin.clock import Clock, isoformat
from tocsin.enrichment.in_flight import EnricherReplies, EnrichmentFailure, InFlightQuestions
from tocsin.enrichment.sanitizer import sanitize_enrichments
from tocsin.errors import Misconfigured, PluginFailure, Refused, TryLater
from tocsin.hookspecs import Enricher
from tocsin.limits import Quota, TokenBuckets
from tocsin.loops import was_cancelled
from tocsin.model import Enrichment, Entity, QueryOutcome
from tocsin.store import clean_text

SIDE_BY_SIDE = 4
PATIENCE = 3
"""Number of consecutive failed batches after which the remaining entities are skipped."""
HELD_FOR = timedelta(minutes=1)
"""Pause of an overloaded enricher that does not specify one."""

_TOKENS = 100_000  # per minute; with a limit of n requests, each costs an nth
_REASON = 500
_log = structlog.get_logger()


def make_buckets(clock: Clock) -> TokenBuckets:
    """Return the rate limits of all enrichers; nodes share each API's quota."""
    return TokenBuckets("enrichers", Quota(per_minute=_TOKENS, burst=_TOKENS), clock)


@dataclass(slots=True)
class _BatchRun:
    """Progress of a request in batches."""

    patient_until: datetime
    replies: EnricherReplies = field(default_factory=EnricherReplies)
    failed: int = 0
    """Consecutive batches without a response; a refusal counts as one."""
    ended_by: EnrichmentFailure | None = None

    def count(self, came: object) -> None:
        """Record the result of a batch; end the run if the failure concerns all batches."""
        if not isinstance(came, EnrichmentFailure):
            self.failed = 0
            return
        self.failed += came.outcome is QueryOutcome.UNAVAILABLE
        if came.final or self.failed >= PATIENCE:
            self.ended_by = self.ended_by or came


class BatchedEnricher:
    """Asks one enricher, in batches and within its rate limit."""

    def __init__(self, name: str, enricher: Enricher, buckets: TokenBuckets, clock: Clock) -> None:
        self.name = name
        self.enricher = enricher
        self._buckets = buckets
        self._clock = clock
        self.questions = InFlightQuestions()
        """Questions in progress."""
        self._side_by_side = asyncio.Semaphore(SIDE_BY_SIDE)
        self._held_until: datetime | None = None

    async def ask(self, entities: Sequence[Entity]) -> EnricherReplies:
        """Return the replies for these entities; raises nothing.

        Waits for its turn under the rate limit no longer than one request may take.
        """
        size = max(self.enricher.batch, 1)
        batches = deque(entities[at : at + size] for at in range(0, len(entities), size))
        this = _BatchRun(self._clock.now() + self.enricher.settings.timeout)
        async with asyncio.TaskGroup() as workers:
            for _ in range(min(SIDE_BY_SIDE, len(batches))):
                workers.create_task(self._work(batches, this))
        return this.replies

    async def _work(self, batches: deque[Sequence[Entity]], this: _BatchRun) -> None:
        while batches:
            batch = batches.popleft()
            async with self._side_by_side:
                came = this.ended_by or await self._ask_batch(batch, this.patient_until)
            this.count(came)
            for entity in batch:
                reply = came if isinstance(came, EnrichmentFailure) else came[entity]
                this.replies.note(entity, reply)
                self.questions.settle(entity, reply)

    async def _ask_batch(
        self, batch: Sequence[Entity], patient_until: datetime
    ) -> dict[Entity, Enrichment | None] | EnrichmentFailure:
        if self._clock.now() > patient_until:
            return EnrichmentFailure(
                QueryOutcome.UNAVAILABLE, "no time left for the request", final=True
            )
        if self.enricher.online:
            failure = self._held() or await self._take_turn(len(batch), patient_until)
            if failure:
                return failure
        try:
            async with asyncio.timeout(self.enricher.settings.timeout.total_seconds()):
                returned = await self.enricher.enrich(batch)
        except (Exception, asyncio.CancelledError, SystemExit) as error:
            if was_cancelled():
                raise
            return self._build_failure(error)
        try:
            return sanitize_enrichments(returned, batch, self.enricher.enrich)
        except (TypeError, ValueError, AttributeError) as error:
            _log.error("enricher returned an unusable result", enricher=self.name, exc_info=error)
            return EnrichmentFailure(
                QueryOutcome.UNAVAILABLE, clean_text(f"failed: {error}", _REASON)
            )

    def _held(self) -> EnrichmentFailure | None:
        if self._held_until is None or self._held_until <= self._clock.now():
            return None
        reason = f"paused until {isoformat(self._held_until)}, as the service requested"
        return EnrichmentFailure(QueryOutcome.UNAVAILABLE, reason, final=True)

    async def _take_turn(self, count: int, patient_until: datetime) -> EnrichmentFailure | None:
        rate = self.enricher.settings.requests_per_minute
        while not (status := self._buckets.take(self.name, count * _TOKENS / rate)).allowed:
            pause = timedelta(seconds=status.retry_after)
            if self._clock.now() + pause > patient_until:
                reason = f"the limit requests_per_minute ({rate}) is reached"
                return EnrichmentFailure(QueryOutcome.UNAVAILABLE, reason, final=True)
            await self._clock.sleep(pause)
        return None

    def _build_failure(self, error: BaseException) -> EnrichmentFailure:
        reason = clean_text(str(error) or repr(error), _REASON)
        match error:
            case TimeoutError():
                seconds = self.enricher.settings.timeout.total_seconds()
                return EnrichmentFailure(
                    QueryOutcome.UNAVAILABLE, f"no response within {seconds:g} s", final=True
                )
            case TryLater():
                self._hold(error)
                return EnrichmentFailure(QueryOutcome.UNAVAILABLE, reason, final=True)
            case Refused():
                return EnrichmentFailure(
                    QueryOutcome.REFUSED, reason, final=isinstance(error, Misconfigured)
                )
            case PluginFailure():
                return EnrichmentFailure(QueryOutcome.UNAVAILABLE, reason)
        _log.error("enricher failed", enricher=self.name, exc_info=error)
        # the message may contain secrets
        return EnrichmentFailure(QueryOutcome.UNAVAILABLE, f"failed ({type(error).__name__})")

    def _hold(self, error: TryLater) -> None:
        """Pause the enricher as long as it requests, or by default if it is throttled."""
        pause = error.after or (HELD_FOR if error.throttled else None)
        if pause:
            self._held_until = self._clock.now() + pause
