"""Circuit breaker for destinations.

Pure functions. When a receiver is overloaded, deliveries wait for a while. When attempts keep
failing for long enough and often enough, the destination is paused. After either delay, one
delivery is sent as a probe, and deliveries resume if it succeeds. In the usual terms, the circuit
is open while a destination is paused, and half-open while it is being probed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum

MAX_HOLD = timedelta(hours=1)
"""Longest delay that a receiver can request; after this time, Tocsin probes the receiver."""
_MIN_HOLD = timedelta(seconds=1)
_MAX_OWN_HOLD = timedelta(minutes=1)


class AttemptVerdict(Enum):
    """What an attempt says about the receiver's health."""

    HEALTHY = "healthy"
    FAILING = "failing"
    THROTTLED = "throttled"
    UNWANTED = "unwanted"
    """The receiver does not want any more deliveries."""
    NOTHING = "nothing"
    """The attempt did not reach the receiver, or failed because of its content."""


@dataclass(frozen=True, slots=True)
class HealthStatus:
    """A receiver's health so far."""

    is_paused: bool = False
    failures: int = 0
    """Number of consecutive failed attempts."""
    failing_since: datetime | None = None
    holds: int = 0
    """Number of consecutive responses that signal overload."""
    held_until: datetime | None = None
    """When to send the next delivery, as a probe; before this time, nothing is sent."""


@dataclass(frozen=True, slots=True)
class PausePolicy:
    """When to pause a destination, and how often to probe it."""

    period: timedelta
    failures: int
    probe_interval: timedelta


def apply_verdict(
    health: HealthStatus,
    verdict: AttemptVerdict,
    policy: PausePolicy,
    now: datetime,
    requested_delay: timedelta | None = None,
) -> HealthStatus:
    """Return the health after one more attempt; the receiver may have requested a delay."""
    match verdict:
        case AttemptVerdict.HEALTHY:
            return HealthStatus()
        case AttemptVerdict.FAILING | AttemptVerdict.THROTTLED:
            failed = _count_failure(health, now)
            if verdict is AttemptVerdict.THROTTLED:
                failed = _hold(failed, now, requested_delay)
            return _pause(failed, policy, now)
        case _:
            return health


def _count_failure(health: HealthStatus, now: datetime) -> HealthStatus:
    since = health.failing_since or now
    return replace(health, failures=health.failures + 1, failing_since=since)


def _hold(health: HealthStatus, now: datetime, requested_delay: timedelta | None) -> HealthStatus:
    """Hold deliveries back; only a longer requested delay extends a hold that has begun."""
    until = health.held_until
    if until is not None and until > now:
        requested_until = now + min(requested_delay or timedelta(0), MAX_HOLD)
        return replace(health, held_until=max(until, requested_until))
    own = min(_MIN_HOLD * 2 ** min(health.holds, 10), _MAX_OWN_HOLD)
    delay = min(max(requested_delay or own, _MIN_HOLD), MAX_HOLD)
    return replace(health, holds=health.holds + 1, held_until=now + delay)


def _pause(health: HealthStatus, policy: PausePolicy, now: datetime) -> HealthStatus:
    if not health.is_paused:
        since = health.failing_since or now
        is_steady = now - since >= policy.period and health.failures >= policy.failures
        if not is_steady:
            return health
    probe_at = now + policy.probe_interval
    until = max(health.held_until, probe_at) if health.held_until else probe_at
    return replace(health, is_paused=True, held_until=until)
