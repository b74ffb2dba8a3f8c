"""What the log says of attempts and of destinations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import structlog

from tocsin.clock import isoformat
from tocsin.delivery.destinations.records import DestinationState
from tocsin.delivery.health.standings import DestinationTransition
from tocsin.delivery.queue import seam as queue
from tocsin.delivery.queue.seam import AttemptResult

_log = structlog.get_logger()


def log_attempts(
    destination: str, ended: Sequence[AttemptResult], late: Sequence[AttemptResult]
) -> None:
    """Log how attempts ended: one line for all that succeeded, one for each that did not."""
    too_late = {attempt.claimed.id for attempt in late}
    arrived = []
    for attempt in ended:
        if attempt.claimed.id in too_late:
            _log.warning("attempt came too late; its lease had run out", **_log_fields(attempt))
        elif attempt.state == queue.DELIVERED:
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
    if attempt.state == queue.PENDING:
        _log.warning("not delivered yet", **facts, again_at=isoformat(attempt.due_at))
    elif attempt.state == queue.PARKED:
        _log.error("parked until that is mended", **facts)
    else:
        _log.error("not delivered, and not tried again", **facts)


def log_transition(change: DestinationTransition) -> None:
    """Log that a destination was paused, stopped or resumed."""
    after = change.after
    if not change.is_state_change:
        return
    if after.state is DestinationState.ACTIVE:
        _log.info("destination resumed", destination=after.name)
    else:
        words = f"destination {after.state}"
        _log.error(words, destination=after.name, reason=after.reason, detail=after.detail)
