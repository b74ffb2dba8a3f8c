"""Test events for destinations."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import Connection

from tocsin.credentials import ConsoleRole
from tocsin.delivery import SampleResult
from tocsin.model import Json
from tocsin.web.context import AccessRole, AuditedChange, Endpoint, RequestContext, Response
from tocsin.web.record_problems import DESTINATION_DELETED, DESTINATION_NOT_FOUND
from tocsin.web.routes.destination_records import (
    destination_target,
    find_living,
    record_contact,
)
from tocsin.web.schemas.destinations import SampleOutcome, SampleRequest


async def send_sample(call: RequestContext) -> SampleResult:
    """Send a sample event, and return the outcome."""
    destination = await call.services.database.read(find_living, call)
    body: SampleRequest = call.body
    targets = call.services.destination_validator.list_targets(destination)
    await record_contact(call, destination.name, targets)
    return await call.services.samples.send(destination, body.event_type)


def send_test_event(_connection: Connection, call: RequestContext) -> Response:
    """Send one test event, in any state of the destination and regardless of its filters.

    Tocsin does not store the event.
    """
    sent: SampleResult = call.prepared
    details: dict[str, Json] = {"event_type": call.body.event_type, "outcome": sent.outcome}
    content: dict[str, Json] = {
        "event_id": sent.event_id,
        "outcome": sent.outcome,
        "status": sent.status,
        "duration_ms": sent.duration // timedelta(milliseconds=1),
        "reason": sent.reason,
        "response": sent.response.decode("utf-8", "replace"),
        "remote_id": sent.remote_id,
        "remote_url": sent.remote_url,
    }
    return Response(
        content, change=AuditedChange(target=destination_target(call.path["name"]), details=details)
    )


ENDPOINTS = (
    Endpoint(
        method="POST",
        path="/api/admin/destinations/{name}/test",
        access=AccessRole.ADMIN,
        summary="Send a test event to a destination",
        handler=send_test_event,
        role=ConsoleRole.OPERATOR,
        prepare=send_sample,
        body=SampleRequest,
        body_required=False,
        response=SampleOutcome,
        action="destination.test",
        problems=(DESTINATION_NOT_FOUND, DESTINATION_DELETED),
    ),
)
