"""How much each caller may ask for, and how long whoever fails to authenticate waits."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from tocsin.clock import Clock
from tocsin.errors import CallerError
from tocsin.limits import Quota, QuotaStatus, TokenBuckets, build_rate_limit_headers
from tocsin.web.addresses import address_key
from tocsin.web.problems import ProblemType, refusal

FAILURE_DELAY = timedelta(seconds=1)
"""How long the answer to an address that fails too often is held back."""
MAX_DELAYED_RESPONSES = 1_000
"""How many answers are held back at once; beyond that they are given at once."""
SECRET_QUOTA = Quota(per_minute=20, burst=20)
"""Secrets tried for one identifier by one address; each costs an Argon2id."""
PUSH_QUOTA = Quota(per_minute=6_000, burst=1_000)
"""Requests to one provider. Many senders give up what is refused, so it only keeps floods away."""

_TOO_MANY_REQUESTS = "Too many requests; try again in {seconds} s."
_TOO_MANY_FAILURES = "Too many failed authentications from this address; try again in {seconds} s."
_TOO_MANY_PUSHES = "Too much is pushed to this provider; try again in {seconds} s."


class ApiRateLimits:
    """The limits of the API, each by token bucket."""

    def __init__(self, requests: Quota, failures: Quota, clock: Clock) -> None:
        self._requests = TokenBuckets("credential", requests, clock)
        self._failures = TokenBuckets("authentication", failures, clock)
        self._secrets = TokenBuckets("secrets-tried", SECRET_QUOTA, clock)
        self._pushes = TokenBuckets("push", PUSH_QUOTA, clock)
        self._clock = clock
        self._parked = 0

    @property
    def buckets(self) -> tuple[TokenBuckets, ...]:
        """Every limit, for nodes to share."""
        return self._requests, self._failures, self._secrets, self._pushes

    def count_request(self, principal_id: str) -> Mapping[str, str]:
        """Return the header fields that say where the caller stands; CallerError (429)."""
        standing = self._requests.take(principal_id)
        if not standing.allowed:
            raise _limit_exceeded(self._requests, standing, _TOO_MANY_REQUESTS)
        return build_rate_limit_headers(self._requests.name, self._requests.quota, standing)

    def is_failing(self, address: str) -> bool:
        """Return whether so many authentications failed lately that a new one is not tried."""
        return not self._failures.look(address_key(address)).allowed

    async def count_failure(self, address: str) -> None:
        """Count a failed authentication; CallerError (429), after a while, for one too many.

        Holding the answer back is what keeps one address from having the service do nothing but
        refuse it.
        """
        standing = self._failures.take(address_key(address))
        if not standing.allowed:
            await self._hold_back()
            raise _limit_exceeded(self._failures, standing, _TOO_MANY_FAILURES)

    def try_secret(self, identifier: str, address: str) -> None:
        """Take what a run of Argon2id costs; CallerError (429) where too many were run lately."""
        standing = self._secrets.take(f"{identifier} {address_key(address)}")
        if not standing.allowed:
            raise _limit_exceeded(self._secrets, standing, _TOO_MANY_FAILURES)

    def give_back_secret(self, identifier: str, address: str) -> None:
        """Take nothing for a secret that was right."""
        self._secrets.give_back(f"{identifier} {address_key(address)}")

    def count_push(self, provider: str) -> Mapping[str, str]:
        """Return the header fields that say how many more the provider takes; CallerError (503).

        Not 429: Alertmanager and Datadog send again what was answered 5xx, and nothing else.
        """
        standing = self._pushes.take(provider)
        fields = build_rate_limit_headers(self._pushes.name, self._pushes.quota, standing)
        if not standing.allowed:
            words = _TOO_MANY_PUSHES.format(seconds=standing.retry_after)
            raise CallerError(503, words, headers=fields)
        return fields

    def give_back_push(self, provider: str) -> None:
        """Take nothing for what a provider does not let in, or anyone could use up its limit."""
        self._pushes.give_back(provider)

    async def _hold_back(self) -> None:
        if self._parked >= MAX_DELAYED_RESPONSES:
            return
        self._parked += 1
        try:
            await self._clock.sleep(FAILURE_DELAY)
        finally:
            self._parked -= 1


def _limit_exceeded(buckets: TokenBuckets, standing: QuotaStatus, words: str) -> CallerError:
    fields = build_rate_limit_headers(buckets.name, buckets.quota, standing)
    return too_many_requests(words, standing.retry_after, fields)


def too_many_requests(
    words: str, seconds: int, fields: Mapping[str, str] | None = None
) -> CallerError:
    """Return the error that tells a caller to come back later (RFC 6585 section 4)."""
    error = refusal(ProblemType.TOO_MANY_REQUESTS, 429, words.format(seconds=seconds))
    error.headers |= {**(fields or {}), "Retry-After": str(seconds)}
    return error
