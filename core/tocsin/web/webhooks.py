"""Admission of webhooks: limits, body, and authentication by the destination."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from tocsin.errors import CredentialsRefused
from tocsin.hookspecs import PushRequest
from tocsin.web.authentication import RATE_LIMIT_FIELDS
from tocsin.web.context import RequestContext
from tocsin.web.parsing import require_media_type

T = TypeVar("T")


async def admit_webhook(
    call: RequestContext,
    media_type: str,
    authenticate: Callable[[str, PushRequest], Awaitable[T]],
) -> T:
    """Return the result of `authenticate` for a webhook to the destination in the path.

    Raises ProblemError: 401 if `authenticate` raises `CredentialsRefused`, and 408, 413, 415, 429
    or 503 if the request cannot be read, or cannot be read now.
    """
    services, request, name = call.services, call.request, call.path["destination"]
    await services.webhook_limits.require_allowed(request, name)
    require_media_type(request, media_type)
    address = services.addresses.find(request)
    body = await services.push_bodies.receive_webhook(request, address)
    try:
        found = await authenticate(name, PushRequest(headers=request.headers, body=body))
    except CredentialsRefused:
        raise await services.webhook_limits.reject(request) from None
    services.webhook_limits.remember(request, name)
    request[RATE_LIMIT_FIELDS] = services.rate_limits.count_webhook(name)
    return found
