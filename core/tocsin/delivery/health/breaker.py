"""Circuit breaker for destinations.

Pure functions. Overload holds deliveries back for a while; steady failures, for long enough and
often enough, pause the destination. After either delay one delivery is sent as a probe, and its
success resumes the rest. In the usual terms, a paused destination is an open circuit, and one that
is being probed a half-open one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum

MAX_HOLD = timedelta(hours=1)
"""Upper bound of a delay that a receiver requests; it is probed then."""
_MIN_HOLD = timedelta(seconds=1)
_MAX_OWN_HOLD = timedelta(minutes=1)


class AttemptVerdict(Enum):
    """Meaning of an attempt for the health of the receiver."""

    HEALTHY = "healthy"
    FAILING = "failing"
    THROTTLED = "throttled"
    UNWANTED = "unwanted"
    """The receiver wants nothing more."""
    NOTHING = "nothing"
    """The attempt did not reach the receiver, or failed for its content."""


@dataclass(frozen=True, slots=True)
class HealthStatus:
    """Health of a receiver so far."""

    is_paused: bool = False
    failures: int = 0
    """Consecutive failed attempts."""
    failing_since: datetime | None = None
    holds: int = 0
    """Consecutive signs of overload."""
    held_until: datetime | None = None
    """Nothing is sent before; from then on, one delivery is sent as a probe."""


@dataclass(frozen=True, slots=True)
class PausePolicy:
    """Threshold for pausing a destination, and interval of its probes."""

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
    """Return the status after one more attempt; `requested_delay` is the receiver's own."""
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
    """Hold deliveries back; responses that were in progress when a hold began do not extend it."""
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
