"""Endpoint for webhooks of ticket products."""

from __future__ import annotations

from tocsin.errors import CredentialsRefused
from tocsin.hookspecs import PushRequest
from tocsin.web.authentication import RATE_LIMIT_FIELDS
from tocsin.web.context import AccessRole, Endpoint, RequestContext, Response
from tocsin.web.parsing import require_json
from tocsin.web.problems import PATH_NOT_FOUND
from tocsin.web.schemas.ticket_events import EventReceipt, TicketEvent


async def push_ticket_event(call: RequestContext) -> Response:
    """Accept a webhook of a ticket product, and read the statuses of the tickets that it names."""
    services, request, name = call.services, call.request, call.path["destination"]
    await services.webhook_limits.require_allowed(request, name)
    require_json(request)
    address = services.addresses.find(request)
    body = await services.push_bodies.receive_webhook(request, address)
    try:
        named = await services.webhooks.authenticate(
            name, PushRequest(headers=request.headers, body=body)
        )
    except CredentialsRefused:
        raise await services.webhook_limits.reject(request) from None
    services.webhook_limits.remember(request, name)
    request[RATE_LIMIT_FIELDS] = services.rate_limits.count_webhook(name)
    await services.webhooks.mark_due(name, named)
    return Response({"status": "accepted"})


ENDPOINTS = (
    Endpoint(
        method="POST",
        path="/api/ticket-events/{destination}",
        access=AccessRole.WEBHOOK,
        summary="Push a ticket webhook",
        handler=push_ticket_event,
        body=TicketEvent,
        response=EventReceipt,
        status=202,
        problems=(PATH_NOT_FOUND,),
    ),
)
