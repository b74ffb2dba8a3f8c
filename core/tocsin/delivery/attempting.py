"""One attempt at one delivery, and what follows from how it ended."""

from __future__ import annotations

import asyncio
import random
from datetime import datetime, timedelta
from functools import partial

import structlog

from tocsin.delivery.queue import DEAD, DELIVERED, PENDING, Attempt, Claimed
from tocsin.delivery.rendering import Renderer
from tocsin.errors import Refused, TryLater
from tocsin.hookspecs import Channel
from tocsin.model import Delivery, Receipt

RESPONSE_LIMIT = 16_384
LONGEST_DELAY = timedelta(hours=24)
JITTER = 0.1  # of the delay, only ever added
# A channel keeps its own time-out; this stops one that does not
_GRACE = timedelta(seconds=5)
_log = structlog.get_logger()


class Attempts:
    """Makes attempts at the deliveries of one channel."""

    def __init__(self, channel: Channel, renderer: Renderer) -> None:
        self._channel = channel
        self._renderer = renderer
        self._clock = channel.tools.clock

    async def make(self, claimed: Claimed) -> Attempt:
        """Try once, and return how it ended; never raises."""
        started = self._clock.now()
        try:
            receipt = await self._deliver(claimed)
        except Exception as error:  # noqa: BLE001 - becomes the attempt's reason
            return self._failed(claimed, started, error)
        return self._delivered(claimed, started, receipt)

    async def _deliver(self, claimed: Claimed) -> Receipt:
        settings = self._channel.settings
        delivery = Delivery(
            id=claimed.id,
            event=claimed.event,
            attempt=claimed.attempt,
            remote=claimed.remote,
            render=partial(self._renderer.render, settings.template, claimed.event),
        )
        async with asyncio.timeout((settings.timeout + _GRACE).total_seconds()):
            return await self._channel.deliver(delivery)

    def _delivered(self, claimed: Claimed, started: datetime, receipt: Receipt) -> Attempt:
        now = self._clock.now()
        return Attempt(
            claimed=claimed,
            state=DELIVERED,
            outcome=DELIVERED,
            started_at=started,
            ended_at=now,
            due_at=now,
            status=receipt.status,
            response=receipt.response[:RESPONSE_LIMIT],
            remote_id=receipt.remote_id,
        )

    def _failed(self, claimed: Claimed, started: datetime, error: Exception) -> Attempt:
        outcome, reason = self._judge(claimed, error)
        now = self._clock.now()
        delay = None if isinstance(error, Refused) else self._delay(claimed.attempt, error)
        return Attempt(
            claimed=claimed,
            state=DEAD if delay is None else PENDING,
            outcome=outcome,
            started_at=started,
            ended_at=now,
            due_at=now if delay is None else now + delay,
            status=getattr(error, "status", None),
            reason=reason,
            response=getattr(error, "response", b"")[:RESPONSE_LIMIT],
        )

    def _judge(self, claimed: Claimed, error: Exception) -> tuple[str, str]:
        match error:
            case Refused():
                return "refused", str(error)
            case TryLater():
                return "later", str(error)
            case TimeoutError():
                return "later", "the channel did not end in time"
            case _:
                _log.exception(
                    "a channel failed", destination=self._channel.tools.name, id=claimed.id
                )
                return "failed", f"{type(error).__name__}: {error}"

    def _delay(self, attempt: int, error: Exception) -> timedelta | None:
        """Return how long to wait before the next attempt, or None when the schedule is used up."""
        schedule = self._channel.settings.retry_schedule
        if attempt > len(schedule):
            return None
        asked = getattr(error, "after", None) or timedelta(0)
        delay: timedelta = max(schedule[attempt - 1], min(asked, LONGEST_DELAY))
        return delay * (1 + random.uniform(0, JITTER))  # noqa: S311 - spreads load, hides nothing
