"""Taking what others push to a provider."""

from __future__ import annotations

from aiohttp import web

from tocsin.errors import CredentialsRefused, Refused
from tocsin.hookspecs import PushRequest
from tocsin.incidents import ReadCounts
from tocsin.web.authentication import RATE_LIMIT_FIELDS
from tocsin.web.context import AccessRole, Endpoint, RequestContext, Response
from tocsin.web.parsing import read_body, require_json
from tocsin.web.problems import PUSH_BODY_LIMIT
from tocsin.web.record_problems import (
    PUSH_NOT_PARSED,
    PUSH_PROVIDER_NOT_FOUND,
    PUSH_TOO_LARGE,
    TOO_MANY_PUSHES,
)
from tocsin.web.schemas.push import PushBody, PushResult


async def push_incidents(call: RequestContext) -> Response:
    """Accept incidents from another system.

    They are stored when the response is 200. A repeated push changes nothing, so it is safe to
    retry when no response arrives. A payload that cannot be parsed is quarantined with the reason.
    """
    name, request = call.path["provider"], call.request
    if not call.services.inbox.has(name):
        raise web.HTTPNotFound
    await call.services.push_authentication.require_allowed(request, name)
    require_json(request)
    body = await _read(request)
    request[RATE_LIMIT_FIELDS] = call.services.rate_limits.count_push(name)
    counts = await _take(call, name, PushRequest(headers=request.headers, body=body))
    call.services.push_authentication.remember(request, name)
    return Response(
        {
            "provider": name,
            "received": counts.records,
            "new": counts.new,
            "changed": counts.changed,
            "rejected": counts.rejected,
        }
    )


async def _read(request: web.Request) -> bytes:
    try:
        return await read_body(request.clone(client_max_size=PUSH_BODY_LIMIT))
    except web.HTTPRequestEntityTooLarge:
        raise PUSH_TOO_LARGE.error() from None


async def _take(call: RequestContext, name: str, request: PushRequest) -> ReadCounts:
    try:
        return await call.services.inbox.take(name, request)
    except CredentialsRefused:
        call.services.rate_limits.give_back_push(name)
        del call.request[RATE_LIMIT_FIELDS]
        raise await call.services.push_authentication.reject(call.request) from None
    except Refused as error:
        call.services.push_authentication.remember(call.request, name)
        raise PUSH_NOT_PARSED.error(reason=error) from None


ENDPOINTS = (
    Endpoint(
        method="POST",
        path="/api/push/{provider}",
        access=AccessRole.SENDER,
        summary="Push incidents to a provider",
        handler=push_incidents,
        body=PushBody,
        response=PushResult,
        problems=(PUSH_PROVIDER_NOT_FOUND, PUSH_TOO_LARGE, PUSH_NOT_PARSED, TOO_MANY_PUSHES),
    ),
)
