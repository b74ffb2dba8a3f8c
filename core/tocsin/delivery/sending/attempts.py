"""Delivery attempts: execution, outcome and log messages."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from traceback import format_exception
from typing import Any

import structlog

from tocsin.clock import isoformat
from tocsin.delivery.destinations.repository import DestinationState
from tocsin.delivery.health.breaker import AttemptVerdict
from tocsin.delivery.health.health_status import DestinationTransition
from tocsin.delivery.queue.states import (
    DEAD,
    DELIVERED,
    ON_HOLD,
    PENDING,
    AttemptResult,
    ClaimedDelivery,
)
from tocsin.delivery.rendering import Renderer
from tocsin.errors import Broken, CredentialsRefused, Misconfigured, Refused, TryLater
from tocsin.events import read_traceparent
from tocsin.hookspecs import Channel
from tocsin.loops import PLUGIN_FAILURES, was_cancelled
from tocsin.model import ChangeType, Delivery, Receipt
from tocsin.plugin_results import require_result
from tocsin.redaction import SHORTEST_IN_IDS, Redactor
from tocsin.store import clean_text
from tocsin.time_limits import TimeLimits
from tocsin.tracing import build_headers, is_on, span

RESPONSE_LIMIT = 16_384
REASON_LIMIT = 1_000
REMOTE_ID_LIMIT = 1_000
REMOTE_URL_LIMIT = 2_000
LONGEST_DELAY = timedelta(hours=24)
_LONGEST_CLEANED = 2 * RESPONSE_LIMIT  # more of what a receiver sends is not looked at
_LARGEST_STATUS = 100_000
JITTER = 0.1  # fraction of the delay, only ever added
# channels enforce their own timeout; this stops one that does not
GRACE = timedelta(seconds=5)
_log = structlog.get_logger()


class AttemptRunner:
    """Runs attempts at the deliveries of one channel."""

    def __init__(self, channel: Channel, renderer: Renderer) -> None:
        self._channel = channel
        self.renderer = renderer
        """Renders the attempts that begin from now on."""
        self._clock = channel.tools.clock
        self._time_limits = TimeLimits()
        self._longest = (channel.settings.timeout + GRACE).total_seconds()
        self._redactor = Redactor(channel.list_secrets())
        self._id_redactor = Redactor(channel.list_secrets(), SHORTEST_IN_IDS)

    async def make(self, claimed: ClaimedDelivery) -> AttemptResult:
        """Attempt a delivery once, and return the result, whatever the channel raises."""
        if not is_on():
            return await self._attempt(claimed)
        facts = {"destination": self._channel.tools.name, "event_id": claimed.event.id}
        facts |= {"delivery_id": claimed.id, "attempt": str(claimed.attempt)}
        parent = read_traceparent(claimed.event)
        with span("delivery.attempt", facts, kind="client", parent=parent) as traced:
            result = await self._attempt(claimed)
            traced.set({"outcome": result.outcome, "status": result.status or 0})
        return result

    async def _attempt(self, claimed: ClaimedDelivery) -> AttemptResult:
        started = self._clock.now()
        try:
            receipt = await self._deliver(claimed)
        except PLUGIN_FAILURES as error:
            if was_cancelled():
                raise
            return self._build_failure(claimed, started, error)
        return self._build_result(
            claimed,
            started,
            state=DELIVERED,
            outcome=DELIVERED,
            verdict=AttemptVerdict.HEALTHY,
            answer=receipt,
            remote_id=receipt.remote_id and self._clean_id(receipt.remote_id),
            closed=tuple(map(self._clean_id, receipt.closed)),
            remote_url=clean_link(receipt.remote_url, self._id_redactor)
            if receipt.remote_url
            else None,
        )

    async def _deliver(self, claimed: ClaimedDelivery) -> Receipt:
        settings = self._channel.settings
        event_type, parts = claimed.event.template_type, self._channel.parts
        await self.renderer.prepare(settings.template, event_type, parts)
        delivery = Delivery(
            id=claimed.id,
            event=claimed.event,
            attempt=claimed.attempt,
            remote_id=claimed.remote_id,
            related=claimed.related,
            previous_remote_id=claimed.previous_remote_id,
            tried_at=claimed.tried_at,
            render=partial(self.renderer.render, settings.template, claimed.event),
            contract=self.renderer.contract(settings.template),
            trace_headers=build_headers(),
        )
        with self._time_limits.limit(self._longest):
            is_change = isinstance(claimed.event.event_type, ChangeType)
            deliver = self._channel.follow if is_change else self._channel.deliver
            receipt = await deliver(delivery)
        return require_result(receipt, Receipt, deliver)

    def _build_failure(
        self, claimed: ClaimedDelivery, started: datetime, error: BaseException
    ) -> AttemptResult:
        outcome, verdict, reason = self._judge(claimed, error)
        requested_delay = _requested_delay(error)
        unsent = isinstance(error, TryLater) and error.unsent
        delay = self._delay(claimed, requested_delay, error)
        return self._build_result(
            claimed,
            started,
            state=_delivery_state(error, delay),
            outcome=outcome,
            verdict=verdict,
            delay=delay,
            requested_delay=requested_delay,
            unsent=unsent,
            reason=clean_text(self._redactor.clean(reason[:_LONGEST_CLEANED]), REASON_LIMIT),
            answer=error if isinstance(error, TryLater | Refused) else None,
        )

    def _build_result(
        self,
        claimed: ClaimedDelivery,
        started: datetime,
        *,
        delay: timedelta | None = None,
        answer: Receipt | TryLater | Refused | None = None,
        **members: Any,
    ) -> AttemptResult:
        now = self._clock.now()
        return AttemptResult(
            claimed=claimed,
            started_at=started,
            ended_at=now,
            due_at=now + (delay or timedelta(0)),
            status=_clean_status(answer.status) if answer else None,
            response=self._clean_response(answer.response) if answer else b"",
            **members,
        )

    def _clean_response(self, response: object) -> bytes:
        return self._redactor.clean_bytes(_response_bytes(response)[:_LONGEST_CLEANED])[
            :RESPONSE_LIMIT
        ]

    def _clean_id(self, identifier: object) -> str:
        return clean_text(
            self._id_redactor.clean(str(identifier)[:_LONGEST_CLEANED]), REMOTE_ID_LIMIT
        )

    def _judge(
        self, claimed: ClaimedDelivery, error: BaseException
    ) -> tuple[str, AttemptVerdict, str]:
        """Return the outcome of a failure, the verdict on the receiver and the reason."""
        match error:
            case Refused():
                return *_refusal_verdict(error), str(error)
            case TryLater() | Broken():
                return "later", _retry_verdict(error), str(error)
            case TimeoutError():
                reason = "the channel took longer than the destination's `timeout` allows"
                return "later", AttemptVerdict.FAILING, reason
            case _:
                destination = self._channel.tools.name
                text = self._redactor.clean("".join(format_exception(error)))
                _log.error("channel failed", destination=destination, id=claimed.id, exception=text)
                return "failed", AttemptVerdict.FAILING, f"{type(error).__name__}: {error}"

    def _delay(
        self, claimed: ClaimedDelivery, requested_delay: timedelta | None, error: BaseException
    ) -> timedelta | None:
        """Return the delay before the next attempt, or None if there is no next attempt.

        The retry schedule does not advance after a probe, or if nothing was sent.
        """
        if isinstance(error, Refused):
            return None
        settings = self._channel.settings
        if isinstance(error, TryLater) and error.unsent:
            return requested_delay or settings.probe_interval
        requested_delay = requested_delay or timedelta(0)
        delay: timedelta = max(settings.probe_interval, requested_delay)
        if claimed.is_probe:
            return delay
        if claimed.step > len(settings.retry_schedule):
            return None
        delay = max(settings.retry_schedule[claimed.step - 1], requested_delay)
        return delay * (1 + random.uniform(0, JITTER))  # noqa: S311 - spreads load, not for security


def clean_link(url: object, redactor: Redactor) -> str | None:
    """Return a link to a remote object if it is safe to show, or else None."""
    link = redactor.clean(str(url)[:_LONGEST_CLEANED])
    is_link = link.startswith(("https://", "http://")) and link.isprintable()
    return link if is_link and " " not in link and len(link) <= REMOTE_URL_LIMIT else None


def _retry_verdict(error: TryLater | Broken) -> AttemptVerdict:
    """Return the verdict on the receiver for a retryable failure."""
    match error:
        case TryLater(unsent=True):
            return AttemptVerdict.NOTHING
        case TryLater(partly=True):
            return AttemptVerdict.HEALTHY
        case TryLater(throttled=True):
            return AttemptVerdict.THROTTLED
    return AttemptVerdict.FAILING


def _refusal_verdict(error: Refused) -> tuple[str, AttemptVerdict]:
    if error.unwanted:
        return "refused", AttemptVerdict.UNWANTED
    if isinstance(error, CredentialsRefused):
        return "refused", AttemptVerdict.FAILING
    is_ours = isinstance(error, Misconfigured)
    return "misconfigured" if is_ours else "refused", AttemptVerdict.NOTHING


def _requested_delay(error: BaseException) -> timedelta | None:
    """Return the delay that the receiver requested, within bounds."""
    requested_delay = error.after if isinstance(error, TryLater) else None
    return min(requested_delay, LONGEST_DELAY) if isinstance(requested_delay, timedelta) else None


def _delivery_state(error: BaseException, delay: timedelta | None) -> str:
    if isinstance(error, Misconfigured) or (isinstance(error, Refused) and error.unwanted):
        return ON_HOLD
    return DEAD if delay is None else PENDING


def _clean_status(status: Any) -> int | None:
    """Return the status of a response, or None if the plugin did not return a valid one."""
    is_one = isinstance(status, int) and 0 <= status < _LARGEST_STATUS
    return int(status) if is_one else None  # `HTTPStatus` is stored as a plain integer


def _response_bytes(response: object) -> bytes:
    """Return the response as bytes, even if the plugin returned another type."""
    return response if isinstance(response, bytes) else str(response).encode(errors="replace")


def log_attempts(
    destination: str, ended: Sequence[AttemptResult], late: Sequence[AttemptResult]
) -> None:
    """Log results: one line for all successful attempts, and one for each failed attempt."""
    too_late = {attempt.claimed.identity for attempt in late}
    arrived = []
    for attempt in ended:
        if attempt.claimed.identity in too_late:
            _log.warning("attempt finished after its lease expired", **_log_fields(attempt))
        elif attempt.state == DELIVERED:
            arrived.append(attempt)
        else:
            _log_failure(destination, attempt)
    if len(arrived) == 1:
        _log.info("delivered", destination=destination, **_log_fields(arrived[0]))
    elif arrived:
        events = f"{arrived[0].claimed.event.id} to {arrived[-1].claimed.event.id}"
        _log.info("delivered", destination=destination, deliveries=len(arrived), events=events)


def _log_fields(attempt: AttemptResult) -> dict[str, Any]:
    return {
        "subject": attempt.claimed.event.subject,
        "event_id": attempt.claimed.event.id,
        "attempt": attempt.claimed.attempt,
        "status": attempt.status,
    }


def _log_failure(destination: str, attempt: AttemptResult) -> None:
    facts = {"destination": destination, **_log_fields(attempt), "reason": attempt.reason}
    if attempt.state == PENDING:
        _log.warning("delivery failed; retrying", **facts, again_at=isoformat(attempt.due_at))
    elif attempt.state == ON_HOLD:
        _log.error("delivery on hold until its configuration is fixed", **facts)
    else:
        _log.error("delivery failed permanently", **facts)


def log_transition(change: DestinationTransition) -> None:
    """Log that a destination was paused, disabled or resumed."""
    after = change.after
    if not change.is_state_change:
        return
    if after.state is DestinationState.ACTIVE:
        _log.info("destination resumed", destination=after.name)
    else:
        message = f"destination {after.state}"
        _log.error(message, destination=after.name, reason=after.reason, detail=after.detail)
