"""Administering destinations."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import timedelta
from functools import partial

from sqlalchemy import Connection

from tocsin import audit, delivery
from tocsin.clock import isoformat, isoformat_or_none
from tocsin.credentials import ConsoleRole
from tocsin.delivery import (
    Destination,
    DestinationSpec,
    DestinationState,
    InvalidDestinationError,
    SampleResult,
    StopReason,
    load_destination,
)
from tocsin.errors import NameTakenError
from tocsin.model import Json
from tocsin.registry import ManagedBy
from tocsin.web.context import AccessRole, AuditedChange, Endpoint, RequestContext, Response
from tocsin.web.dispatch import build_audit_entry
from tocsin.web.pagination import PageCursor, page_response
from tocsin.web.parsing import invalid_request
from tocsin.web.record_problems import (
    DESTINATION_CHANGED,
    DESTINATION_DELETED,
    DESTINATION_MANAGED,
    DESTINATION_NAME_TAKEN,
    DESTINATION_NOT_FOUND,
    DESTINATION_NOT_RESUMABLE,
)
from tocsin.web.schemas.destinations import (
    LIST,
    DestinationChange,
    DestinationDetail,
    DestinationItem,
    DestinationList,
    DestinationQuery,
    NewDestination,
    ResumedDestination,
    SampleOutcome,
    SampleRequest,
)


@dataclass(frozen=True, slots=True)
class ValidatedChange:
    """New settings of a destination, and the revision that they are based on."""

    written: DestinationSpec
    revision: int


async def validate_new(call: RequestContext) -> DestinationSpec:
    """Return the validated destination; raises ProblemError (422)."""
    body: NewDestination = call.body
    with _translate_setting_errors():
        return await call.services.destination_validator.validate_new(
            body.name, body.plugin, body.settings, partial(_record_contact, call)
        )


async def validate_change(call: RequestContext) -> ValidatedChange | None:
    """Return the validated settings, None if they stay; raises ProblemError (422)."""
    body: DestinationChange = call.body
    if not body.settings:
        return None
    destination = await call.services.database.read(_find_changeable, call)
    with _translate_setting_errors():
        written = await call.services.destination_validator.validate_change(
            destination, body.settings, partial(_record_contact, call)
        )
    return ValidatedChange(written, destination.revision)


async def send_sample(call: RequestContext) -> SampleResult:
    """Send a sample event, and return the outcome."""
    destination = await call.services.database.read(_find_living, call)
    body: SampleRequest = call.body
    targets = call.services.destination_validator.list_targets(destination)
    await _record_contact(call, destination.name, targets)
    return await call.services.samples.send(destination, body.event_type)


async def _record_contact(call: RequestContext, name: str, targets: list[str]) -> None:
    """Write the audit entry of a request to a receiver, before it is sent."""
    entry = build_audit_entry(
        call.services,
        call.request,
        call.services.clock.now(),
        actor=call.principal.id,
        action="destination.contact",
        target=_target(name),
        details={"targets": list[Json](targets)},
    )
    await call.services.database.write(audit.record, entry)


@contextmanager
def _translate_setting_errors() -> Iterator[None]:
    try:
        yield
    except InvalidDestinationError as error:
        raise invalid_request("body", [asdict(wrong) for wrong in error.wrong]) from None


def create_destination(connection: Connection, call: RequestContext) -> Response:
    """Create a destination, and return it. Its secrets are stored encrypted."""
    written: DestinationSpec = call.prepared
    now = call.services.clock.now()
    try:
        made = delivery.create_destination(connection, written, call.principal.name, now)
    except NameTakenError:
        raise DESTINATION_NAME_TAKEN.error(name=written.name) from None
    return _respond(call, made, {"plugin": made.plugin, "settings": sorted(call.body.settings)})


def list_destinations(connection: Connection, call: RequestContext) -> Response:
    """Return one page of destinations, by name."""
    query: DestinationQuery = call.query
    page = delivery.list_destinations(
        connection,
        state=query.state,
        limit=query.limit,
        after=query.cursor.name if query.cursor else None,
    )
    items = [_represent(destination, call) for destination in page.destinations]
    content = {"destinations": items, "total": page.total}
    return page_response(call, content, PageCursor.at_name(LIST, page.next) if page.next else None)


def get_destination(connection: Connection, call: RequestContext) -> Response:
    """Return a destination, even if it was deleted, with the number of its open deliveries."""
    destination = _find(connection, call)
    counts = delivery.count_waiting(connection, destination.name)
    return Response(_represent(destination, call) | counts)


def update_destination(connection: Connection, call: RequestContext) -> Response:
    """Change, disable or enable a destination, and return it; settings end an automatic stop."""
    body: DestinationChange = call.body
    change: ValidatedChange | None = call.prepared
    destination = (_find_changeable if body.settings else _find_living)(connection, call, lock=True)
    if (reason := destination.reason) is StopReason.REMOVED:
        raise DESTINATION_NOT_RESUMABLE.error(reason=_NOT_RESUMED[reason])
    if change is not None and change.revision != destination.revision:
        raise DESTINATION_CHANGED.error()
    if change is None and body.enabled is None:
        return Response(_represent(destination, call))
    written = None if change is None else change.written
    now = call.services.clock.now()
    changed = delivery.update_destination(connection, destination, written, body.enabled, now)
    if changed is destination:
        return Response(_represent(destination, call))
    action = {True: "destination.enable", False: "destination.disable", None: None}[body.enabled]
    if change is None:
        return _respond(call, changed, {}, action)
    enabled = {} if body.enabled is None else {"enabled": body.enabled}
    return _respond(call, changed, {"settings": sorted(body.settings or ()), **enabled})


def delete_destination(connection: Connection, call: RequestContext) -> Response:
    """Delete a destination, and return it; its pending deliveries become dead."""
    destination = _find(connection, call, lock=True)
    if destination.state is DestinationState.DELETED:
        return Response(_represent(destination, call))
    # What plugins.toml names no more can be changed nowhere else
    if destination.reason is not StopReason.REMOVED:
        _require_managed_here(destination)
    deleted = delivery.delete_destination(connection, destination, call.services.clock.now())
    return _respond(call, deleted, {})


def resume_destination(connection: Connection, call: RequestContext) -> Response:
    """End an automatic stop, send the deliveries on hold, and return the destination.

    An active destination can also have deliveries on hold, for example because a permission was
    missing.
    """
    destination = _find_living(connection, call, lock=True)
    if destination.reason in _NOT_RESUMED:
        raise DESTINATION_NOT_RESUMABLE.error(reason=_NOT_RESUMED[destination.reason])
    now, is_active = call.services.clock.now(), destination.state is DestinationState.ACTIVE
    release = delivery.release_on_hold if is_active else delivery.requeue_destination
    released = release(connection, destination.name, now)
    if not is_active:
        resumed = delivery.resume_destination(connection, destination, now)
    elif released:
        resumed = destination
    else:
        return Response({**_represent(destination, call), "released": 0})
    details: dict[str, Json] = {"reason": destination.reason, "released": released}
    change = AuditedChange(target=_target(destination.name), details=details)
    return Response({**_represent(resumed, call), "released": released}, change=change)


def send_test_event(_connection: Connection, call: RequestContext) -> Response:
    """Send one event that is marked as a test, and return the outcome.

    Nothing is stored. The event is sent regardless of the destination's state and filters.
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
        content, change=AuditedChange(target=_target(call.path["name"]), details=details)
    )


_NOT_RESUMED = {
    StopReason.MANUAL: "The destination was disabled manually; set `enabled` to resume it.",
    StopReason.REMOVED: "The destination is no longer in plugins.toml; apply a file that "
    "contains it.",
}

_MANAGED = {
    ManagedBy.FILE: "This destination is defined in plugins.toml; change it there and apply the "
    "file.",
    ManagedBy.PLUGIN: "This destination belongs to a plugin; to remove it, disable the plugin in "
    "plugins.toml.",
}


def _find(connection: Connection, call: RequestContext, *, lock: bool = False) -> Destination:
    destination = load_destination(connection, call.path["name"], lock=lock)
    if destination is None:
        raise DESTINATION_NOT_FOUND.error()
    return destination


def _find_living(
    connection: Connection, call: RequestContext, *, lock: bool = False
) -> Destination:
    destination = _find(connection, call, lock=lock)
    if destination.state is DestinationState.DELETED:
        raise DESTINATION_DELETED.error()
    return destination


def _find_changeable(
    connection: Connection, call: RequestContext, *, lock: bool = False
) -> Destination:
    destination = _find_living(connection, call, lock=lock)
    _require_managed_here(destination)
    return destination


def _require_managed_here(destination: Destination) -> None:
    if destination.managed_by is not ManagedBy.API:
        raise DESTINATION_MANAGED.error(reason=_MANAGED[destination.managed_by])


def _respond(
    call: RequestContext,
    destination: Destination,
    details: dict[str, Json],
    action: str | None = None,
) -> Response:
    change = AuditedChange(target=_target(destination.name), details=details, action=action)
    return Response(_represent(destination, call), change=change)


def _target(name: str) -> str:
    return f"destination:{name}"


def _represent(destination: Destination, call: RequestContext) -> dict[str, Json]:
    settings, secrets = call.services.destination_validator.describe_settings(destination)
    health = destination.health
    return {
        "name": destination.name,
        "plugin": destination.plugin,
        "managed_by": destination.managed_by,
        "state": destination.state,
        "reason": destination.reason,
        "detail": destination.detail,
        "settings": settings,
        "secrets": secrets,
        "failures": health.failures,
        "failing_since": isoformat_or_none(health.failing_since),
        "held_until": isoformat_or_none(health.held_until),
        "created_by": destination.created_by,
        "created_at": isoformat(destination.created_at),
        "updated_at": isoformat(destination.updated_at),
        "revision": destination.revision,
    }


_DESTINATIONS = "/api/admin/destinations"
_DESTINATION = f"{_DESTINATIONS}/{{name}}"

ENDPOINTS = (
    Endpoint(
        method="POST",
        path=_DESTINATIONS,
        access=AccessRole.ADMIN,
        summary="Create a destination",
        handler=create_destination,
        role=ConsoleRole.OPERATOR,
        prepare=validate_new,
        body=NewDestination,
        response=DestinationItem,
        action="destination.create",
        idempotent=True,
        status=201,
        problems=(DESTINATION_NAME_TAKEN,),
    ),
    Endpoint(
        method="GET",
        path=_DESTINATIONS,
        access=AccessRole.ADMIN,
        summary="List destinations by name",
        handler=list_destinations,
        query=DestinationQuery,
        response=DestinationList,
    ),
    Endpoint(
        method="GET",
        path=_DESTINATION,
        access=AccessRole.ADMIN,
        summary="Get a destination and its pending deliveries",
        handler=get_destination,
        response=DestinationDetail,
        problems=(DESTINATION_NOT_FOUND,),
    ),
    Endpoint(
        method="PATCH",
        path=_DESTINATION,
        access=AccessRole.ADMIN,
        summary="Update, disable or enable a destination",
        handler=update_destination,
        role=ConsoleRole.OPERATOR,
        prepare=validate_change,
        body=DestinationChange,
        response=DestinationItem,
        action="destination.change",
        problems=(
            DESTINATION_NOT_FOUND,
            DESTINATION_DELETED,
            DESTINATION_MANAGED,
            DESTINATION_CHANGED,
            DESTINATION_NOT_RESUMABLE,
        ),
    ),
    Endpoint(
        method="DELETE",
        path=_DESTINATION,
        access=AccessRole.ADMIN,
        summary="Delete a destination; its pending deliveries are not sent",
        handler=delete_destination,
        role=ConsoleRole.OPERATOR,
        response=DestinationItem,
        action="destination.delete",
        problems=(DESTINATION_NOT_FOUND, DESTINATION_MANAGED),
    ),
    Endpoint(
        method="POST",
        path=f"{_DESTINATION}/resume",
        access=AccessRole.ADMIN,
        summary="Resume a destination after an automatic stop",
        handler=resume_destination,
        role=ConsoleRole.OPERATOR,
        response=ResumedDestination,
        action="destination.resume",
        problems=(DESTINATION_NOT_FOUND, DESTINATION_DELETED, DESTINATION_NOT_RESUMABLE),
    ),
    Endpoint(
        method="POST",
        path=f"{_DESTINATION}/test",
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
