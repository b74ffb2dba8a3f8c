"""Endpoint for webhooks of ticket products."""

from __future__ import annotations

from tocsin.web.context import AccessRole, Endpoint, RequestContext, Response
from tocsin.web.parsing import JSON_MEDIA_TYPE
from tocsin.web.problems import PATH_NOT_FOUND
from tocsin.web.schemas.ticket_events import EventReceipt, TicketEvent
from tocsin.web.webhooks import admit_webhook


async def push_ticket_event(call: RequestContext) -> Response:
    """Accept a webhook from a ticket product and read the statuses of the tickets that it names."""
    inbox = call.services.destinations.webhooks
    named = await admit_webhook(call, JSON_MEDIA_TYPE, inbox.authenticate)
    await inbox.mark_due(call.path["destination"], named)
    return Response({"status": "accepted"})


ENDPOINTS = (
    Endpoint(
        method="POST",
        path="/api/ticket-events/{destination}",
        access=AccessRole.WEBHOOK,
        summary="Send a webhook from a ticket product",
        handler=push_ticket_event,
        body=TicketEvent,
        response=EventReceipt,
        status=202,
        problems=(PATH_NOT_FOUND,),
    ),
)
