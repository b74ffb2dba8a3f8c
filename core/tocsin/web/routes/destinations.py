"""Endpoints for destinations."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from sqlalchemy import Connection

from tocsin import delivery
from tocsin.credentials import ConsoleRole
from tocsin.delivery import (
    Destination,
    DestinationSpec,
    DestinationState,
    StopReason,
)
from tocsin.errors import NameTakenError
from tocsin.model import Json
from tocsin.stops import StopKind, load_stops
from tocsin.web.context import AccessRole, AuditedChange, Endpoint, RequestContext, Response
from tocsin.web.pagination import PageCursor, page_response
from tocsin.web.record_problems import (
    DESTINATION_CHANGED,
    DESTINATION_DELETED,
    DESTINATION_MANAGED,
    DESTINATION_NAME_TAKEN,
    DESTINATION_NOT_FOUND,
    DESTINATION_NOT_RESUMABLE,
)
from tocsin.web.routes.destination_records import (
    describe_destination,
    destination_target,
    find_changeable,
    find_destination,
    find_living,
    record_contact,
    represent_destination,
    require_managed_here,
    translate_setting_errors,
)
from tocsin.web.routes.stop_orders import (
    describe_stop_order,
    read_stop_order,
    translate_stop_errors,
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
)


@dataclass(frozen=True, slots=True)
class ValidatedChange:
    """New settings of a destination, and the revision on which they are based."""

    written: DestinationSpec
    revision: int


async def validate_new(call: RequestContext) -> DestinationSpec:
    """Return the validated destination; raises ProblemError (422)."""
    body: NewDestination = call.body
    with translate_setting_errors():
        return await call.services.destinations.validator.validate_new(
            body.name, body.plugin, body.settings, partial(record_contact, call)
        )


async def validate_change(call: RequestContext) -> ValidatedChange | None:
    """Return the validated settings; None if they do not change; raises ProblemError (422)."""
    body: DestinationChange = call.body
    if not body.settings:
        return None
    destination = await call.services.database.read(find_changeable, call)
    with translate_setting_errors():
        written = await call.services.destinations.validator.validate_change(
            destination, body.settings, partial(record_contact, call)
        )
    return ValidatedChange(written, destination.revision)


def create_destination(connection: Connection, call: RequestContext) -> Response:
    """Create a destination and return it. Tocsin stores its secrets encrypted."""
    written: DestinationSpec = call.prepared
    now = call.services.clock.now()
    try:
        made = delivery.create_destination(connection, written, call.principal.name, now)
    except NameTakenError:
        raise DESTINATION_NAME_TAKEN.error(name=written.name) from None
    return _respond(
        connection, call, made, {"plugin": made.plugin, "settings": sorted(call.body.settings)}
    )


def list_destinations(connection: Connection, call: RequestContext) -> Response:
    """Return one page of destinations, by name."""
    query: DestinationQuery = call.query
    page = delivery.list_destinations(
        connection,
        state=query.state,
        limit=query.limit,
        after=query.cursor.name if query.cursor else None,
    )
    stops = load_stops(connection, StopKind.DESTINATION, call.services.clock.now())
    items = [
        describe_destination(destination, stops.get(destination.name), call)
        for destination in page.destinations
    ]
    content = {"destinations": items, "total": page.total}
    return page_response(call, content, PageCursor.at_name(LIST, page.next) if page.next else None)


def get_destination(connection: Connection, call: RequestContext) -> Response:
    """Return a destination, even if deleted, with the numbers of pending and dead deliveries."""
    destination = find_destination(connection, call)
    counts = delivery.count_waiting(connection, destination.name)
    return Response(represent_destination(connection, destination, call) | counts)


def update_destination(connection: Connection, call: RequestContext) -> Response:
    """Update, disable or enable a destination, and return it.

    New settings also resume a destination that Tocsin stopped.
    """
    body: DestinationChange = call.body
    change: ValidatedChange | None = call.prepared
    destination = (find_changeable if body.settings else find_living)(connection, call, lock=True)
    if (reason := destination.reason) is StopReason.REMOVED:
        raise DESTINATION_NOT_RESUMABLE.error(reason=_NOT_RESUMED[reason])
    if change is not None and change.revision != destination.revision:
        raise DESTINATION_CHANGED.error()
    if change is None and body.enabled is None:
        return Response(represent_destination(connection, destination, call))
    written = None if change is None else change.written
    order, by, now = read_stop_order(call), call.principal.name, call.services.clock.now()
    details = describe_stop_order(order)
    with translate_stop_errors():
        changed = delivery.update_destination(connection, destination, written, order, now, by=by)
    if changed is destination:
        return Response(represent_destination(connection, destination, call))
    action = {True: "destination.enable", False: "destination.disable", None: None}[body.enabled]
    if change is None:
        return _respond(connection, call, changed, details, action)
    enabled = {} if body.enabled is None else {"enabled": body.enabled}
    return _respond(
        connection, call, changed, {"settings": sorted(body.settings or ()), **enabled, **details}
    )


def delete_destination(connection: Connection, call: RequestContext) -> Response:
    """Delete a destination and return it. Its pending deliveries become dead."""
    destination = find_destination(connection, call, lock=True)
    if destination.state is DestinationState.DELETED:
        return Response(represent_destination(connection, destination, call))
    # What plugins.toml names no more can be changed nowhere else
    if destination.reason is not StopReason.REMOVED:
        require_managed_here(destination)
    by, now = call.principal.name, call.services.clock.now()
    deleted = delivery.delete_destination(connection, destination, now, by=by)
    return _respond(connection, call, deleted, {})


def resume_destination(connection: Connection, call: RequestContext) -> Response:
    """Resume a destination that Tocsin paused or disabled, send its held deliveries, and return it.

    An active destination can also have deliveries on hold, for example because a permission was
    missing. Deliveries that wait for their next attempt are sent too.
    """
    destination = find_living(connection, call, lock=True)
    if destination.reason in _NOT_RESUMED:
        raise DESTINATION_NOT_RESUMABLE.error(reason=_NOT_RESUMED[destination.reason])
    now, is_active = call.services.clock.now(), destination.state is DestinationState.ACTIVE
    released = delivery.requeue_destination(connection, destination.name, now)
    if not is_active:
        resumed = delivery.resume_destination(connection, destination, now)
    elif released:
        resumed = destination
    else:
        return Response({**represent_destination(connection, destination, call), "released": 0})
    details: dict[str, Json] = {"reason": destination.reason, "released": released}
    change = AuditedChange(target=destination_target(destination.name), details=details)
    return Response(
        {**represent_destination(connection, resumed, call), "released": released}, change=change
    )


_NOT_RESUMED = {
    StopReason.MANUAL: "The destination was disabled manually. To enable it, set `enabled` to "
    "true.",
    StopReason.REMOVED: "plugins.toml no longer contains the destination; add it back and apply "
    "the file.",
}


def _respond(
    connection: Connection,
    call: RequestContext,
    destination: Destination,
    details: dict[str, Json],
    action: str | None = None,
) -> Response:
    change = AuditedChange(
        target=destination_target(destination.name), details=details, action=action
    )
    return Response(represent_destination(connection, destination, call), change=change)


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
        role=ConsoleRole.VIEWER,
        summary="List destinations by name",
        handler=list_destinations,
        query=DestinationQuery,
        response=DestinationList,
    ),
    Endpoint(
        method="GET",
        path=_DESTINATION,
        access=AccessRole.ADMIN,
        role=ConsoleRole.VIEWER,
        summary="Get a destination with the numbers of its pending and dead deliveries",
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
        summary="Delete a destination without sending its pending deliveries",
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
        summary="Resume a destination that Tocsin paused or disabled",
        handler=resume_destination,
        role=ConsoleRole.OPERATOR,
        response=ResumedDestination,
        action="destination.resume",
        problems=(DESTINATION_NOT_FOUND, DESTINATION_DELETED, DESTINATION_NOT_RESUMABLE),
    ),
)
