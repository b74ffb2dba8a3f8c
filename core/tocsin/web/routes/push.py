"""Taking what others push to a provider."""

from __future__ import annotations

from aiohttp import web
from pydantic import ConfigDict, Field

from tocsin.errors import CallerError, CredentialsRefused, Refused
from tocsin.hookspecs import PushRequest
from tocsin.incidents.coverage.ledger import ReadCounts
from tocsin.web.authentication import RATE_LIMIT_FIELDS
from tocsin.web.context import RequestContext, Response
from tocsin.web.parsing import BodyModel, ResponseModel, read_body, require_json

MAX_BODY = 1024 * 1024
"""The longest body, in bytes."""
TOO_LARGE = f"What is pushed holds {MAX_BODY} bytes at most."


class PushBody(BodyModel):
    """What is pushed, in the shape that the provider's settings name."""

    model_config = ConfigDict(extra="allow", json_schema_extra={"type": ["object", "array"]})


class PushResult(ResponseModel):
    """What a push came to, once all of it is stored."""

    provider: str
    received: int = Field(description="How many incidents were sent.")
    new: int = Field(description="How many of them were not known yet.")
    changed: int = Field(description="How many differ from what was known of them.")
    rejected: int = Field(
        description="How many could not be understood, or are said to be missing; they are kept "
        "aside with the reason."
    )


async def push_incidents(call: RequestContext) -> Response:
    """Take incidents that others send.

    They are stored once this is answered 200. The same again changes nothing, so it is safe to send
    it again where the answer did not arrive. Where nothing can be understood, it is kept aside with
    the reason.
    """
    name, request = call.path["provider"], call.request
    if not call.services.inbox().has(name):
        raise web.HTTPNotFound
    await call.services.senders.judge(request, name)
    require_json(request)
    body = await _read(request)
    request[RATE_LIMIT_FIELDS] = call.services.throttle.count_push(name)
    counts = await _take(call, name, PushRequest(headers=request.headers, body=body))
    call.services.senders.let_in(request, name)
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
        return await read_body(request.clone(client_max_size=MAX_BODY))
    except web.HTTPRequestEntityTooLarge:
        raise CallerError(413, TOO_LARGE) from None


async def _take(call: RequestContext, name: str, request: PushRequest) -> ReadCounts:
    try:
        return await call.services.inbox().take(name, request)
    except CredentialsRefused:
        call.services.throttle.give_back_push(name)
        del call.request[RATE_LIMIT_FIELDS]
        raise await call.services.senders.refuse(call.request) from None
    except Refused as error:
        call.services.senders.let_in(call.request, name)
        raise CallerError(422, f"Nothing of it could be understood: {error}") from None
