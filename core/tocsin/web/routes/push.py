"""Endpoint for pushes to a provider."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from math import ceil

from aiohttp import web

from tocsin.errors import ConflictError, CredentialsRefused, Refused
from tocsin.hookspecs import PushRequest
from tocsin.incidents import PushRefusal, PushResult
from tocsin.web.authentication import RATE_LIMIT_FIELDS
from tocsin.web.client_addresses import address_key
from tocsin.web.context import AccessRole, Endpoint, RequestContext, Response
from tocsin.web.idempotency import read_idempotency_key
from tocsin.web.parsing import require_json
from tocsin.web.problems import ProblemError
from tocsin.web.record_problems import (
    NODE_SUSPENDED,
    PROVIDER_STOPPED,
    PUSH_NOT_PARSED,
    PUSH_PROVIDER_NOT_FOUND,
    PUSH_TOO_LARGE,
    PUSHES_UNDER_WAY,
    TOO_MANY_PUSHES,
)
from tocsin.web.request_problems import IDEMPOTENCY_KEY_REUSED, INVALID_IDEMPOTENCY_KEY
from tocsin.web.schemas.push import PushBody, PushSummary

_REFUSALS = {
    401: PushRefusal.CREDENTIALS,
    408: PushRefusal.TOO_SLOW,
    411: PushRefusal.MEDIA_TYPE,
    413: PushRefusal.TOO_LARGE,
    415: PushRefusal.MEDIA_TYPE,
    422: PushRefusal.NOT_PARSED,
    429: PushRefusal.CREDENTIALS,
    503: PushRefusal.TOO_MANY,
}
"""Kinds of refused pushes for the metric, by the status of the response."""
_SUSPENDED_RETRY = {"Retry-After": "10"}


async def push_incidents(call: RequestContext) -> Response:
    """Accept incidents from another system.

    Status 200 means that Tocsin has stored the incidents. Status 202 means that the intake keeps
    the push until Tocsin stores the incidents. In this case, `new` and `changed` are null, and an
    `Idempotency-Key` identifies the push for ten minutes. If you receive no response, you can
    safely send the push again. Tocsin quarantines a payload that it cannot parse. If the node is
    suspended, or a person has disabled the provider, the response is 503 with `Retry-After`.
    """
    name = call.path["provider"]
    if not call.services.inbox.has(name):
        raise web.HTTPNotFound
    refuse = partial(call.services.inbox.refuse, name)
    require_running(call, refuse)  # its clock may be wrong, so it would not know a signature
    with _count_refusals(call, name):
        is_authentic = await _authenticate(call, name)
    await require_enabled(call, name, refuse)
    with _count_refusals(call, name):
        result = await _receive(call, name, is_authentic=is_authentic)
    counts = result.counts
    return Response(
        {
            "provider": name,
            "received": counts.records,
            "new": counts.new if result.is_stored else None,
            "changed": counts.changed if result.is_stored else None,
            "rejected": counts.rejected,
        },
        status=None if result.is_stored else 202,
    )


def require_running(
    call: RequestContext, refuse: Callable[[PushRefusal], object] = lambda _: None
) -> None:
    """Raise ProblemError (503) if the node is suspended; `refuse` counts the refusal."""
    if (reason := call.services.node.suspension) is not None:
        refuse(PushRefusal.SUSPENDED)
        raise NODE_SUSPENDED.error(_SUSPENDED_RETRY, reason=reason)


async def require_enabled(
    call: RequestContext, name: str, refuse: Callable[[PushRefusal], object] = lambda _: None
) -> None:
    """Raise ProblemError (503) if a person has disabled the provider; `refuse` counts it."""
    if (delay := await call.services.inbox.find_retry_delay(name)) is not None:
        refuse(PushRefusal.STOPPED)
        seconds = max(1, ceil(delay.total_seconds()))
        raise PROVIDER_STOPPED.error({"Retry-After": str(seconds)}, seconds=seconds)


@contextmanager
def _count_refusals(call: RequestContext, name: str) -> Iterator[None]:
    try:
        yield
    except ConflictError:
        call.services.inbox.refuse(name, PushRefusal.KEY_REUSED)
        raise IDEMPOTENCY_KEY_REUSED.error() from None
    except ProblemError as error:
        if refusal := _REFUSALS.get(error.status):
            call.services.inbox.refuse(name, refusal)
        raise


async def _authenticate(call: RequestContext, name: str) -> bool | None:
    """Return whether the header shows that the provider knows the sender, None if it does not tell.

    Raises ProblemError for an unknown sender.
    """
    services, request = call.services, call.request
    await services.push_attempt_limits.require_allowed(request, name)
    require_json(request)
    request[RATE_LIMIT_FIELDS] = services.rate_limits.count_push(name)
    is_authentic = services.inbox.is_authentic(name, request.headers)
    if is_authentic is False:
        raise await _reject(call, name)
    return is_authentic


async def _receive(call: RequestContext, name: str, *, is_authentic: bool | None) -> PushResult:
    """Store a push, or pass it to the intake; raises ProblemError if it is refused."""
    services, request = call.services, call.request
    address = None if is_authentic else address_key(services.addresses.find(request))
    limit = services.inbox.get_body_limit(name)
    async with services.push_bodies.receive(request, limit, address) as body:
        result = await _take(call, name, PushRequest(headers=request.headers, body=body))
    services.push_attempt_limits.remember(request, name)
    return result


async def _take(call: RequestContext, name: str, request: PushRequest) -> PushResult:
    try:
        inbox = call.services.inbox
        key = read_idempotency_key(call.request) if inbox.uses_intake(name) else None
        return await inbox.take(name, request, key)
    except CredentialsRefused:
        raise await _reject(call, name) from None
    except Refused as error:
        call.services.push_attempt_limits.remember(call.request, name)
        raise PUSH_NOT_PARSED.error(reason=error) from None


async def _reject(call: RequestContext, name: str) -> ProblemError:
    """Return the error for a sender that the provider does not know."""
    call.services.rate_limits.give_back_push(name)
    del call.request[RATE_LIMIT_FIELDS]
    return await call.services.push_attempt_limits.reject(call.request, name)


ENDPOINTS = (
    Endpoint(
        method="POST",
        path="/api/push/{provider}",
        access=AccessRole.SENDER,
        summary="Push incidents to a provider",
        handler=push_incidents,
        body=PushBody,
        response=PushSummary,
        other_statuses=(202,),
        problems=(
            PUSH_PROVIDER_NOT_FOUND,
            PUSH_TOO_LARGE,
            PUSH_NOT_PARSED,
            TOO_MANY_PUSHES,
            PUSHES_UNDER_WAY,
            NODE_SUSPENDED,
            PROVIDER_STOPPED,
            INVALID_IDEMPOTENCY_KEY,
            IDEMPOTENCY_KEY_REUSED,
        ),
    ),
)
