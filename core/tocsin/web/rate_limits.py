"""Rate limits for requests, failed authentications and pushes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from aiohttp import hdrs, web

from tocsin.clock import Clock
from tocsin.credentials import DigestCache
from tocsin.limits import Quota, QuotaStatus, TokenBuckets, build_rate_limit_headers
from tocsin.web.client_addresses import ClientAddresses, address_key
from tocsin.web.problems import ProblemError, ProblemType
from tocsin.web.record_problems import TOO_MANY_PUSHES, UNAUTHORIZED_PUSH, UNAUTHORIZED_WEBHOOK
from tocsin.web.request_problems import TOO_MANY_FAILURES, TOO_MANY_REQUESTS

FAILURE_DELAY = timedelta(seconds=1)
"""How long to delay the response to an address with too many failed authentications."""
MAX_DELAYED_RESPONSES = 1_000
"""How many responses to delay at the same time; further responses are sent without delay."""
SECRET_QUOTA = Quota(per_minute=20, burst=20)
"""How many secrets an address can try for an identifier; each attempt costs an Argon2id run."""
PUSH_QUOTA = Quota(per_minute=6_000, burst=1_000)
"""Limit of pushes to a provider; stops only floods, because many senders drop rejected pushes."""

WEBHOOK_QUOTA = Quota(per_minute=600, burst=600)
"""Limit of webhooks to a destination; each webhook makes Tocsin read objects from the receiver."""

CEREMONY_QUOTA = Quota(per_minute=60, burst=60)
"""How many passkey sign-ins an address can begin; each requires Tocsin to encrypt a challenge."""

TEST_QUOTA = Quota(per_minute=30, burst=30)
"""How many destination tests a caller can send; each contacts a server of the caller's choice."""


class ApiRateLimits:
    """Rate limits of the API, as token buckets.

    A rejected credential that an address sends again is not another guess. It counts against the
    address only once an hour, and otherwise against a separate limit, so a client that still sends
    a replaced credential does not lock out the client that uses the new one.
    """

    def __init__(self, requests: Quota, failures: Quota, clock: Clock) -> None:
        self._requests = TokenBuckets("credential", requests, clock)
        self._failures = TokenBuckets("authentication", failures, clock)
        self._secrets = TokenBuckets("secrets-tried", SECRET_QUOTA, clock)
        self._pushes = TokenBuckets("push", PUSH_QUOTA, clock)
        self._webhooks = TokenBuckets("webhook", WEBHOOK_QUOTA, clock)
        self._tests = TokenBuckets("destination-test", TEST_QUOTA, clock)
        self._repeats = TokenBuckets("repeated", failures, clock)
        self._ceremonies = TokenBuckets("passkey-sign-in", CEREMONY_QUOTA, clock)
        self._rejected: DigestCache[bool] = DigestCache(clock)
        self._clock = clock
        self._delayed = 0

    @property
    def buckets(self) -> tuple[TokenBuckets, ...]:
        """All limits that the nodes share.

        Each node counts repeated credentials and begun sign-ins itself, without database writes.
        """
        shared = (self._requests, self._failures, self._secrets, self._pushes)
        return *shared, self._webhooks, self._tests

    def count_request(self, principal_id: str) -> Mapping[str, str]:
        """Count a request; return the rate-limit header fields, or raise ProblemError (429)."""
        status = self._requests.take(principal_id)
        if not status.allowed:
            raise _limit_exceeded(self._requests, status, TOO_MANY_REQUESTS)
        return build_rate_limit_headers(self._requests.name, self._requests.quota, status)

    def is_failing(self, address: str, credential: str | None = None) -> bool:
        """Return whether recent failures of this address block a new attempt.

        If this address has already sent this rejected credential, too many repetitions of it also
        block the attempt.
        """
        if not self._failures.look(address_key(address)).allowed:
            return True
        if credential is None or not self.is_repeated(address, credential):
            return False
        return not self._repeats.look(self._digest(address, credential).hex()).allowed

    def is_repeated(self, address: str, credential: str | None) -> bool:
        """Return whether this credential from this address was rejected within the last hour."""
        if credential is None:
            return False
        return self._rejected.recall(self._digest(address, credential)) is not None

    async def count_failure(self, address: str, credential: str | None = None) -> None:
        """Count a failed authentication; over the limit, raise ProblemError (429) after a delay.

        The delay slows down an address that floods the service with failing requests.
        """
        buckets, key = self._failures, address_key(address)
        status = buckets.look(key)
        if status.allowed and credential is not None and self.is_repeated(address, credential):
            buckets, key = self._repeats, self._digest(address, credential).hex()
        elif credential is not None and status.allowed:
            self._rejected.add(self._digest(address, credential), fact=True)
        status = buckets.take(key)
        if not status.allowed:
            await self._hold_back()
            raise _limit_exceeded(buckets, status, TOO_MANY_FAILURES)

    def _digest(self, address: str, credential: str) -> bytes:
        return self._rejected.digest(address_key(address), credential)

    def try_secret(self, identifier: str, address: str) -> None:
        """Count an Argon2id run; raises ProblemError (429) over the limit."""
        status = self._secrets.take(f"{identifier} {address_key(address)}")
        if not status.allowed:
            raise _limit_exceeded(self._secrets, status, TOO_MANY_FAILURES)

    def give_back_secret(self, identifier: str, address: str) -> None:
        """Uncount an attempt whose secret was correct."""
        self._secrets.give_back(f"{identifier} {address_key(address)}")

    def count_destination_test(self, principal_id: str) -> None:
        """Count a test of a destination; over the limit, raise ProblemError (429)."""
        status = self._tests.take(principal_id)
        if not status.allowed:
            raise _limit_exceeded(self._tests, status, TOO_MANY_REQUESTS)

    def count_ceremony(self, address: str) -> None:
        """Count the beginning of a passkey sign-in; over the limit, raise ProblemError (429)."""
        status = self._ceremonies.take(address_key(address))
        if not status.allowed:
            raise _limit_exceeded(self._ceremonies, status, TOO_MANY_REQUESTS)

    def count_push(self, provider: str) -> Mapping[str, str]:
        """Count a push; return the rate-limit header fields, or raise ProblemError (503).

        The status is not 429, because Alertmanager and Datadog retry only after 5xx.
        """
        status = self._pushes.take(provider)
        fields = build_rate_limit_headers(self._pushes.name, self._pushes.quota, status)
        if not status.allowed:
            raise TOO_MANY_PUSHES.error(fields, seconds=status.retry_after)
        return fields

    def give_back_push(self, provider: str) -> None:
        """Uncount an unauthenticated push, because otherwise anyone could use up the limit."""
        self._pushes.give_back(provider)

    def count_webhook(self, destination: str) -> Mapping[str, str]:
        """Count a webhook; return the rate-limit header fields, or raise ProblemError (429)."""
        status = self._webhooks.take(destination)
        if not status.allowed:
            raise _limit_exceeded(self._webhooks, status, TOO_MANY_REQUESTS)
        return build_rate_limit_headers(self._webhooks.name, self._webhooks.quota, status)

    async def _hold_back(self) -> None:
        if self._delayed >= MAX_DELAYED_RESPONSES:
            return
        self._delayed += 1
        try:
            await self._clock.sleep(FAILURE_DELAY)
        finally:
            self._delayed -= 1


def _limit_exceeded(
    buckets: TokenBuckets, status: QuotaStatus, problem: ProblemType
) -> ProblemError:
    """Return the error that says when to retry (RFC 6585 section 4)."""
    fields = build_rate_limit_headers(buckets.name, buckets.quota, status)
    headers = {**fields, "Retry-After": str(status.retry_after)}
    return problem.error(headers, seconds=status.retry_after)


PUSH_CHALLENGE = 'Bearer realm="tocsin", Basic realm="tocsin"'


class PushAttemptLimits:
    """Blocks pushes from addresses with too many failed authentications.

    Failures from the same address do not block senders that were accepted recently, or senders
    without `Authorization`, because the key of a signature is too long to guess.
    """

    def __init__(
        self, rate_limits: ApiRateLimits, addresses: ClientAddresses, clock: Clock
    ) -> None:
        self._rate_limits = rate_limits
        self._addresses = addresses
        self._accepted: DigestCache[bool] = DigestCache(clock)

    async def require_allowed(self, request: web.Request, provider: str) -> None:
        """Raise ProblemError (429) if the sender's address had too many failures."""
        address, credential = self._addresses.find(request), _credential(request, provider)
        if self._rate_limits.is_failing(address, credential) and self._is_guess(request, provider):
            await self._rate_limits.count_failure(address, credential)

    def remember(self, request: web.Request, provider: str) -> None:
        """Remember that the provider accepted the credential."""
        if hdrs.AUTHORIZATION in request.headers:
            self._accepted.add(self._digest(request, provider), fact=True)

    async def reject(self, request: web.Request, provider: str) -> ProblemError:
        """Count a sender with wrong credentials, and return the error (401).

        Raises ProblemError (429) over the limit.
        """
        address = self._addresses.find(request)
        await self._rate_limits.count_failure(address, _credential(request, provider))
        return UNAUTHORIZED_PUSH.error({"WWW-Authenticate": PUSH_CHALLENGE})

    def _is_guess(self, request: web.Request, provider: str) -> bool:
        if hdrs.AUTHORIZATION not in request.headers:
            return False
        return self._accepted.recall(self._digest(request, provider)) is None

    def _digest(self, request: web.Request, provider: str) -> bytes:
        return self._accepted.digest(provider, request.headers[hdrs.AUTHORIZATION])


def _credential(request: web.Request, provider: str) -> str:
    """Return the credential of a sender; all signatures for a provider count as one."""
    return f"{provider} {request.headers.get(hdrs.AUTHORIZATION, 'signature')}"


class WebhookLimits:
    """Blocks webhooks from addresses with too many failed authentications.

    An address from which the destination recently accepted a webhook is not blocked, because
    receivers might share an address with others.
    """

    def __init__(
        self, rate_limits: ApiRateLimits, addresses: ClientAddresses, clock: Clock
    ) -> None:
        self._rate_limits = rate_limits
        self._addresses = addresses
        self._accepted: DigestCache[bool] = DigestCache(clock)

    async def require_allowed(self, request: web.Request, destination: str) -> None:
        """Raise ProblemError (429) if the address had too many failures."""
        address = self._addresses.find(request)
        if self._rate_limits.is_failing(address):
            is_known = self._accepted.recall(self._accepted.digest(destination, address))
            if not is_known:
                await self._rate_limits.count_failure(address)

    def remember(self, request: web.Request, destination: str) -> None:
        """Remember that the destination accepted a webhook from this address."""
        address = self._addresses.find(request)
        self._accepted.add(self._accepted.digest(destination, address), fact=True)

    async def reject(self, request: web.Request) -> ProblemError:
        """Count a webhook with wrong credentials, and return the error (401).

        Raises ProblemError (429) over the limit.
        """
        await self._rate_limits.count_failure(self._addresses.find(request))
        return UNAUTHORIZED_WEBHOOK.error({"WWW-Authenticate": 'Bearer realm="tocsin"'})
