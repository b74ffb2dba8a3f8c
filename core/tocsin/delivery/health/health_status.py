"""Health status of destinations in the database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import Connection, update

from tocsin import audit
from tocsin.delivery.destinations.repository import (
    TOPIC,
    Destination,
    DestinationState,
    StopReason,
    destination_to_row,
    load_destination,
)
from tocsin.delivery.health.breaker import AttemptVerdict, HealthStatus, PausePolicy, apply_verdict
from tocsin.delivery.queue.requeue import requeue_after_outage, requeue_destination
from tocsin.delivery.queue.states import AttemptResult
from tocsin.store import announce
from tocsin.store.tables import destinations

_ACTIONS = {
    DestinationState.PAUSED: "destination.pause",
    DestinationState.ACTIVE: "destination.resume",
    DestinationState.DISABLED: "destination.disable",
}


@dataclass(frozen=True, slots=True)
class DestinationTransition:
    """Change to a destination as a result of attempts."""

    before: Destination
    after: Destination

    @property
    def is_state_change(self) -> bool:
        """Whether the destination's state changes."""
        return self.before.state is not self.after.state


def record_verdicts(
    connection: Connection,
    known: Destination,
    ended: Sequence[AttemptResult],
    policy: PausePolicy,
    now: datetime,
) -> DestinationTransition | None:
    """Store the effect of attempts on the receiver's health; return None if nothing changes.

    Nothing changes if the destination was changed or disabled meanwhile, which resets its health.
    """
    before = load_destination(connection, known.name, lock=True)
    if before is None or not before.is_served or before.revision != known.revision:
        return None
    after = _assess(before, ended, policy, now)
    if after == before and before.health.held_until is None:
        return None
    columns = destination_to_row(after)
    statement = update(destinations).where(destinations.c.name == after.name)
    connection.execute(statement.values({**columns, "probing_until": None}))
    change = DestinationTransition(before, after)
    if before.health.failures and not after.health.failures:
        requeue_after_outage(connection, after.name, now)
    if change.is_state_change:
        if after.state is DestinationState.ACTIVE:
            requeue_destination(connection, after.name, now)
        audit.record(connection, _audit_entry(after, now))
        announce(connection, TOPIC)
    return change


def _assess(
    destination: Destination, ended: Sequence[AttemptResult], policy: PausePolicy, now: datetime
) -> Destination:
    health = destination.health
    for attempt in sorted(ended, key=lambda attempt: attempt.ended_at):
        if attempt.verdict is AttemptVerdict.UNWANTED:
            return _stop(destination, attempt)
        health = apply_verdict(health, attempt.verdict, policy, now, attempt.requested_delay)
    if not health.is_paused:
        return replace(
            destination, health=health, state=DestinationState.ACTIVE, reason=None, detail=None
        )
    detail = destination.detail or next(
        (attempt.reason for attempt in reversed(ended) if attempt.reason), None
    )
    return replace(
        destination,
        health=health,
        state=DestinationState.PAUSED,
        reason=StopReason.FAILING,
        detail=detail,
    )


def _stop(destination: Destination, attempt: AttemptResult) -> Destination:
    return replace(
        destination,
        health=HealthStatus(),
        state=DestinationState.DISABLED,
        reason=StopReason.GONE,
        detail=attempt.reason,
    )


def _audit_entry(destination: Destination, now: datetime) -> audit.AuditRecord:
    return audit.AuditRecord(
        at=now,
        actor="system",
        action=_ACTIONS[destination.state],
        target=f"destination:{destination.name}",
        address="",
        request_id="",
        details={"reason": destination.reason, "detail": destination.detail},
    )
