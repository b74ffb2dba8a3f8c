"""Token buckets and the rate-limit headers of responses.

Everything is counted in integers, so nothing is due slightly late: time in microseconds, and a
token in as many parts that each microsecond fills `per_minute` of them.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from threading import Lock
from typing import NamedTuple

from tocsin.clock import Clock
from tocsin.store import clean_identifier

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_TOKEN = timedelta(minutes=1) // _MICROSECOND
_LONGEST_KEY = 300


@dataclass(frozen=True)
class Quota:
    """Allowance of each key: tokens per minute, and up to `burst` of them at once."""

    per_minute: int
    burst: int


class QuotaStatus(NamedTuple):
    """Status of a key after a request."""

    allowed: bool
    remaining: int
    """Whole tokens left."""
    reset_after: int
    """Seconds until the bucket is full, rounded up; 0 if it is."""
    retry_after: int
    """Seconds until a refused request would be granted, rounded up; 0 if granted."""


class TokenBuckets:
    """One token bucket per key, all with one quota; thread-safe.

    `name` identifies the limit in headers and in the database: up to 20 characters.

    Only the `size` most recently used keys are kept; a key that is not kept has a full bucket. An
    attacker with more addresses can thus evict an earlier one, which gains no more than a new
    address does. A limit by address cannot stop such an attacker, who cannot lock out anyone else
    either.

    A cost above the burst is granted when the bucket is full, and empties it. If the clock is set
    back, buckets continue to fill from their level; if it is set forward, they fill accordingly.
    """

    def __init__(self, name: str, quota: Quota, clock: Clock, *, size: int = 20_000) -> None:
        self.name = name
        self.quota = quota
        self._clock = clock
        self._size = size
        self._capacity = quota.burst * _TOKEN
        self._per_second = quota.per_minute * (timedelta(seconds=1) // _MICROSECOND)
        # Time at which each bucket is full, in parts of a token since the epoch: this single
        # number determines the level at any time.
        self._full_at: OrderedDict[str, int] = OrderedDict()
        self._taken: dict[str, int] = {}  # of kept keys only
        self._latest = self._lost = 0
        self._lock = Lock()

    def take(self, key: str, cost: float = 1) -> QuotaStatus:
        """Take `cost` tokens if they are available, else nothing."""
        amount = min(round(cost * _TOKEN), self._capacity)
        with self._lock:
            key, now, missing = self._find(key)
            lacking = missing + amount - self._capacity
            if lacking <= 0:
                missing += amount
                self._keep(key, now + missing)
                self._taken[key] = self._taken.get(key, 0) + amount
        return self._status(missing, lacking)

    def look(self, key: str) -> QuotaStatus:
        """Return whether one token would be granted, without taking it."""
        with self._lock:
            _, _, missing = self._find(key)
        return self._status(missing, missing + _TOKEN - self._capacity)

    def give_back(self, key: str, cost: float = 1) -> None:
        """Return unused tokens, up to the size of the bucket."""
        with self._lock:
            key, now, missing = self._find(key)
            if amount := min(round(cost * _TOKEN), missing):
                self._keep(key, now + missing - amount)
                self._taken[key] = self._taken.get(key, 0) - amount

    def drain(self, key: str, amount: float) -> None:
        """Take tokens that were used elsewhere, available or not; the debt is one burst at most."""
        with self._lock:
            key, now, missing = self._find(key)
            missing = min(missing + round(amount * _TOKEN), 2 * self._capacity)
            self._keep(key, now + missing)

    def collect(self) -> dict[str, int]:
        """Return the whole tokens taken here by key since the last call.

        Fractions remain for the next call. Keys without use are left out; a number is negative if
        more was returned than taken.
        """
        with self._lock:
            taken = self._taken
            self._taken = {key: rest for key, parts in taken.items() if (rest := parts % _TOKEN)}
        return {key: tokens for key, parts in taken.items() if (tokens := parts // _TOKEN)}

    def _find(self, key: str) -> tuple[str, int, int]:
        """Return the key as kept, the time, and the missing level of its bucket.

        The clock is read under the lock: times in another order would look like a clock that was
        set back, and fill the buckets.
        """
        if len(key) > _LONGEST_KEY or not key.isprintable():
            key = clean_identifier(key, _LONGEST_KEY)  # the database stores it
        now = self._count_parts(self._clock.now())
        full_at = self._full_at.get(key)
        if full_at is None:
            return key, now, 0
        self._full_at.move_to_end(key)
        return key, now, full_at - now if full_at > now else 0

    def _count_parts(self, moment: datetime) -> int:
        """Return the time in parts of a token; it never goes back."""
        now = (moment - _EPOCH) // _MICROSECOND
        if now < self._latest:
            self._lost += self._latest - now
        self._latest = now
        return (now + self._lost) * self.quota.per_minute

    def _keep(self, key: str, full_at: int) -> None:
        self._full_at[key] = full_at
        if len(self._full_at) > self._size:
            forgotten, _ = self._full_at.popitem(last=False)
            self._taken.pop(forgotten, None)

    def _status(self, missing: int, lacking: int) -> QuotaStatus:
        left = self._capacity - missing
        return QuotaStatus(
            lacking <= 0,
            left // _TOKEN if left > 0 else 0,
            -(-missing // self._per_second),
            -(-lacking // self._per_second) if lacking > 0 else 0,
        )


def build_rate_limit_headers(name: str, quota: Quota, status: QuotaStatus) -> dict[str, str]:
    """Return the headers of a limit; `Retry-After` (RFC 9110) only if it refuses.

    The form is draft-ietf-httpapi-ratelimit-headers-11, which may still change. `name` needs no
    escaping. The effective window `t` lasts until the bucket is full or, in a refusal, until a
    retry is worthwhile, because `Retry-After` should not end before it.
    """
    window = status.reset_after if status.allowed else status.retry_after
    fields = {
        "RateLimit-Policy": _build_policy(name, quota.per_minute),
        "RateLimit": f'"{name}";r={status.remaining};t={window}',
    }
    if not status.allowed:
        fields["Retry-After"] = str(status.retry_after)
    return fields


@cache
def _build_policy(name: str, per_minute: int) -> str:
    return f'"{name}";q={per_minute};w=60'
