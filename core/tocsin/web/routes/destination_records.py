"""Functions that the endpoints for destinations share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict

from sqlalchemy import Connection

from tocsin.clock import isoformat, isoformat_or_none
from tocsin.delivery import (
    Destination,
    DestinationState,
    InvalidDestinationError,
    load_destination,
)
from tocsin.model import Json
from tocsin.registry import ManagedBy
from tocsin.stops import EmergencyStop, StopKind, find_stop
from tocsin.web.context import RequestContext
from tocsin.web.dispatch import build_audit_entry, record_action
from tocsin.web.parsing import invalid_request
from tocsin.web.record_problems import (
    DESTINATION_DELETED,
    DESTINATION_MANAGED,
    DESTINATION_NOT_FOUND,
)

_MANAGED = {
    ManagedBy.FILE: "This destination is defined in plugins.toml; change it there and apply the "
    "file.",
    ManagedBy.PLUGIN: "This destination belongs to a plugin; to remove it, disable the plugin in "
    "plugins.toml.",
}


def find_destination(
    connection: Connection,
    call: RequestContext,
    *,
    name: str | None = None,
    lock: bool = False,
) -> Destination:
    """Return the destination of this name, even if deleted; by default, the one in the path.

    Raises ProblemError (404) if there is none.
    """
    destination = load_destination(connection, name or call.path["name"], lock=lock)
    if destination is None:
        raise DESTINATION_NOT_FOUND.error()
    return destination


def find_living(
    connection: Connection,
    call: RequestContext,
    *,
    name: str | None = None,
    lock: bool = False,
) -> Destination:
    """Return a destination; raises ProblemError (404, 409) if it is missing or deleted."""
    destination = find_destination(connection, call, name=name, lock=lock)
    if destination.state is DestinationState.DELETED:
        raise DESTINATION_DELETED.error()
    return destination


def find_changeable(
    connection: Connection,
    call: RequestContext,
    *,
    name: str | None = None,
    lock: bool = False,
) -> Destination:
    """Return a destination; raises ProblemError (404, 409) if the API cannot change it."""
    destination = find_living(connection, call, name=name, lock=lock)
    require_managed_here(destination)
    return destination


def require_managed_here(destination: Destination) -> None:
    """Raise ProblemError (409) for a destination of a file or a plugin."""
    if destination.managed_by is not ManagedBy.API:
        raise DESTINATION_MANAGED.error(reason=_MANAGED[destination.managed_by])


def destination_target(name: str) -> str:
    """Return the target of audit entries about a destination."""
    return f"destination:{name}"


def represent_destination(
    connection: Connection, destination: Destination, call: RequestContext
) -> dict[str, Json]:
    """Return the JSON of a destination."""
    now = call.services.clock.now()
    stop = find_stop(connection, StopKind.DESTINATION, destination.name, now)
    return describe_destination(destination, stop, call)


def describe_destination(
    destination: Destination, stop: EmergencyStop | None, call: RequestContext
) -> dict[str, Json]:
    """Return the JSON of a destination, with its current stop."""
    settings, secrets = call.services.destinations.validator.describe_settings(destination)
    health = destination.health
    return {
        "name": destination.name,
        "plugin": destination.plugin,
        "managed_by": destination.managed_by,
        "state": destination.state,
        "reason": destination.reason,
        "detail": destination.detail,
        "stop": None if stop is None else stop.represent(),
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


async def record_contact(call: RequestContext, name: str, targets: list[str]) -> None:
    """Write the audit entry of a request to a receiver, before it is sent."""
    entry = build_audit_entry(
        call.services,
        call.request,
        call.services.clock.now(),
        actor=call.principal.id,
        action="destination.contact",
        target=destination_target(name),
        details={"targets": list[Json](targets)},
    )
    await call.services.database.write(record_action, call.services, entry)


@contextmanager
def translate_setting_errors() -> Iterator[None]:
    """Turn invalid settings into ProblemError (422)."""
    try:
        yield
    except InvalidDestinationError as error:
        raise invalid_request("body", [asdict(wrong) for wrong in error.wrong]) from None
