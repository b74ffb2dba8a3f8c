"""One attempt at one delivery, and what follows from how it ended."""

from __future__ import annotations

import asyncio
import random
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import structlog

from tocsin.delivery.queue import DEAD, DELIVERED, PENDING, Attempt, Claimed
from tocsin.delivery.rendering import Renderer
from tocsin.errors import Refused, TryLater
from tocsin.hookspecs import Channel
from tocsin.loops import was_cancelled
from tocsin.model import Delivery, Receipt
from tocsin.store.text import clean

RESPONSE_LIMIT = 16_384
REASON_LIMIT = 1_000
REMOTE_ID_LIMIT = 1_000
LONGEST_DELAY = timedelta(hours=24)
JITTER = 0.1  # of the delay, only ever added
# A channel keeps its own time-out; this stops one that does not
GRACE = timedelta(seconds=5)
_log = structlog.get_logger()


class Attempts:
    """Makes attempts at the deliveries of one channel."""

    def __init__(self, channel: Channel, renderer: Renderer) -> None:
        self._channel = channel
        self._renderer = renderer
        self._clock = channel.tools.clock

    async def make(self, claimed: Claimed) -> Attempt:
        """Try once, and return how it ended, whatever the channel does."""
        started = self._clock.now()
        try:
            receipt = await self._deliver(claimed)
        except (Exception, asyncio.CancelledError) as error:
            if was_cancelled():
                raise
            return self._failed(claimed, started, error)
        return self._attempt(
            claimed,
            started,
            state=DELIVERED,
            outcome=DELIVERED,
            answer=receipt,
            remote_id=receipt.remote_id and clean(str(receipt.remote_id), REMOTE_ID_LIMIT),
        )

    async def _deliver(self, claimed: Claimed) -> Receipt:
        settings = self._channel.settings
        delivery = Delivery(
            id=claimed.id,
            event=claimed.event,
            attempt=claimed.attempt,
            remote=claimed.remote,
            render=partial(self._renderer.render, settings.template, claimed.event),
        )
        async with asyncio.timeout((settings.timeout + GRACE).total_seconds()):
            receipt = await self._channel.deliver(delivery)
        if not isinstance(receipt, Receipt):
            raise TypeError(f"it returned {receipt!r}, which is no receipt")
        return receipt

    def _failed(self, claimed: Claimed, started: datetime, error: BaseException) -> Attempt:
        outcome, reason = self._outcome(claimed, error)
        delay = None if isinstance(error, Refused) else self._delay(claimed.attempt, error)
        return self._attempt(
            claimed,
            started,
            state=DEAD if delay is None else PENDING,
            outcome=outcome,
            delay=delay,
            reason=clean(reason, REASON_LIMIT),
            answer=error if isinstance(error, TryLater | Refused) else None,
        )

    def _attempt(
        self,
        claimed: Claimed,
        started: datetime,
        *,
        delay: timedelta | None = None,
        answer: Receipt | TryLater | Refused | None = None,
        **members: Any,
    ) -> Attempt:
        now = self._clock.now()
        return Attempt(
            claimed=claimed,
            started_at=started,
            ended_at=now,
            due_at=now + (delay or timedelta(0)),
            status=answer.status if answer and isinstance(answer.status, int) else None,
            response=_as_bytes(answer.response)[:RESPONSE_LIMIT] if answer else b"",
            **members,
        )

    def _outcome(self, claimed: Claimed, error: BaseException) -> tuple[str, str]:
        match error:
            case Refused():
                return "refused", str(error)
            case TryLater():
                return "later", str(error)
            case TimeoutError():
                return "later", "the channel did not end in time"
            case _:
                destination = self._channel.tools.name
                _log.error(
                    "a channel failed", destination=destination, id=claimed.id, exc_info=error
                )
                return "failed", f"{type(error).__name__}: {error}"

    def _delay(self, attempt: int, error: BaseException) -> timedelta | None:
        """Return how long to wait before the next attempt, or None when the schedule is used up."""
        schedule = self._channel.settings.retry_schedule
        if attempt > len(schedule):
            return None
        asked = error.after if isinstance(error, TryLater) else None
        delay: timedelta = schedule[attempt - 1]
        if isinstance(asked, timedelta):
            delay = max(delay, min(asked, LONGEST_DELAY))
        return delay * (1 + random.uniform(0, JITTER))  # noqa: S311 - spreads load, hides nothing


def _as_bytes(response: object) -> bytes:
    """Return what a channel kept of an answer; a plugin's mistake in its type costs nothing."""
    return response if isinstance(response, bytes) else str(response).encode(errors="replace")
