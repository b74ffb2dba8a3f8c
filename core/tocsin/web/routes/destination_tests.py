"""Test events for destinations."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

from sqlalchemy import Connection

from tocsin.credentials import ConsoleRole
from tocsin.delivery import SampleResult
from tocsin.model import Json
from tocsin.web.context import AccessRole, AuditedChange, Endpoint, RequestContext, Response
from tocsin.web.record_problems import (
    DESTINATION_DELETED,
    DESTINATION_MANAGED,
    DESTINATION_NOT_FOUND,
)
from tocsin.web.routes.destination_records import (
    destination_target,
    find_changeable,
    find_living,
    record_contact,
    translate_setting_errors,
)
from tocsin.web.schemas.destinations import SampleOutcome, SampleRequest, SettingsTest

UNSAVED = "(new)"
"""Name of a destination that is not stored, in audit entries; no destination has this name."""


async def send_sample(call: RequestContext) -> SampleResult:
    """Send a sample event, and return the outcome."""
    call.services.rate_limits.count_destination_test(call.principal.id)
    destination = await call.services.database.read(find_living, call)
    body: SampleRequest = call.body
    targets = call.services.destinations.validator.list_targets(destination)
    await record_contact(call, destination.name, targets)
    return await call.services.destinations.samples.send(destination, body.event_type)


async def send_settings_sample(call: RequestContext) -> SampleResult:
    """Send a sample event with settings that are not stored, and return the outcome."""
    call.services.rate_limits.count_destination_test(call.principal.id)
    body: SettingsTest = call.body
    validator = call.services.destinations.validator
    record = partial(record_contact, call)
    with translate_setting_errors():
        if body.destination is None:
            written = await validator.validate_new(
                UNSAVED, body.plugin or "", body.settings, record
            )
        else:
            find = partial(find_changeable, name=body.destination)
            destination = await call.services.database.read(find, call)
            written = await validator.validate_change(destination, body.settings, record)
    return await call.services.destinations.samples.send(written, body.event_type)


def send_test_event(_connection: Connection, call: RequestContext) -> Response:
    """Send one test event, whatever the destination's state and filters.

    Tocsin does not store the event.
    """
    return _respond(call, call.path["name"])


def send_settings_test(_connection: Connection, call: RequestContext) -> Response:
    """Send one event, which is marked as a test, with settings that are not stored.

    The test uses the stored secrets of a destination, unless the settings name another server.
    """
    body: SettingsTest = call.body
    return _respond(call, body.destination or UNSAVED)


def _respond(call: RequestContext, name: str) -> Response:
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
    return Response(content, change=AuditedChange(target=destination_target(name), details=details))


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
    Endpoint(
        method="POST",
        path="/api/admin/destination-tests",
        access=AccessRole.ADMIN,
        summary="Send a test event with settings that are not stored",
        handler=send_settings_test,
        role=ConsoleRole.OPERATOR,
        prepare=send_settings_sample,
        body=SettingsTest,
        response=SampleOutcome,
        action="destination.test-settings",
        problems=(DESTINATION_NOT_FOUND, DESTINATION_DELETED, DESTINATION_MANAGED),
    ),
)
