"""Administering destinations."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any

import orjson
from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    model_validator,
)
from sqlalchemy import Connection

from tocsin import delivery
from tocsin.clock import isoformat, isoformat_or_none
from tocsin.delivery import (
    Destination,
    DestinationSpec,
    DestinationState,
    InvalidDestinationError,
    SampleResult,
    StopReason,
    load_destination,
)
from tocsin.errors import CallerError, NameTakenError
from tocsin.fields import any_case
from tocsin.model import EventType, Json
from tocsin.registry import NAME_PATTERN, ManagedBy
from tocsin.web.context import AuditedChange, RequestContext, Response
from tocsin.web.pagination import PageCursor
from tocsin.web.parsing import BodyModel, QueryModel, ResponseModel, invalid_request
from tocsin.web.problems import ProblemType, refusal
from tocsin.web.routes.fields import Limit, cursor_field, not_found, page_response

LIST = "d"


def _require_storable(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings; ValueError where they hold what neither database nor answer can."""
    try:
        orjson.dumps(settings)
        text = json.dumps(settings, allow_nan=False)
    except (TypeError, ValueError):
        raise ValueError("a number in it is larger than can be kept") from None
    if r"\u0000" in text.replace(r"\\", ""):
        raise ValueError("it holds the character NUL, which cannot be kept")
    return settings


def _parse_state(text: str) -> DestinationState:
    try:
        return DestinationState(text.lower())
    except ValueError:
        raise ValueError(f"give one of: {', '.join(DestinationState)}") from None


_Settings = Annotated[dict[str, Any], AfterValidator(_require_storable)]


class NewDestination(BodyModel):
    """What a destination is to be."""

    name: Annotated[str, StringConstraints(pattern=NAME_PATTERN)]
    plugin: Annotated[str, StringConstraints(min_length=1, max_length=100)] = Field(
        description="The kind of channel: the name of an enabled plugin."
    )
    settings: _Settings = Field(
        default_factory=dict,
        description="The plugin's settings, secrets among them as text; they are never answered.",
    )


class DestinationChange(BodyModel):
    """What is to be different about a destination."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    settings: _Settings | None = Field(
        default=None, description="Settings to replace; those that are null return to the default."
    )
    enabled: bool | None = Field(
        default=None, description="Whether anything is sent there; what is not sent is kept."
    )

    @model_validator(mode="after")
    def _not_nothing(self) -> DestinationChange:
        if not self.model_fields_set:
            raise ValueError("give settings, enabled or both")
        return self


class SampleRequest(BodyModel):
    """What a test is to look like."""

    event_type: Annotated[EventType, any_case(EventType)] = Field(
        default=EventType.INCIDENT_ALERT, description="The kind of event to send."
    )


class DestinationQuery(QueryModel):
    """Which destinations, and how many at once."""

    state: Annotated[DestinationState, BeforeValidator(_parse_state)] | None = Field(
        default=None,
        description="Only those in this state, in any case; by default all that were not deleted.",
    )
    limit: Limit = 50
    cursor: cursor_field(LIST) | None = None  # type: ignore[valid-type]


class DestinationItem(ResponseModel):
    """A destination, without its secrets."""

    name: str
    plugin: str
    managed_by: ManagedBy = Field(description="Where it can be changed.")
    state: DestinationState
    reason: StopReason | None = Field(description="Why it is not active.")
    detail: str | None = Field(description="What its receiver said last before it was stopped.")
    settings: dict[str, Any] = Field(description="As they were written, without the secrets.")
    secrets: list[str] = Field(description="The names of the secrets that are set.")
    failures: int = Field(description="How many attempts in a row have failed.")
    failing_since: datetime | None
    held_until: datetime | None = Field(description="Until when nothing is sent.")
    created_by: str
    created_at: datetime
    updated_at: datetime
    revision: int = Field(description="Counts up with every change that someone makes.")


class DestinationDetail(DestinationItem):
    """A destination, and how many deliveries to it rest."""

    waiting: int = Field(
        description="Deliveries that have not arrived yet, including those on hold."
    )
    dead: int = Field(description="Deliveries that will not be attempted again by themselves.")


class DestinationList(ResponseModel):
    """One page of destinations."""

    destinations: list[DestinationItem]
    total: int
    next_cursor: str | None = Field(description="For `cursor`; null on the last page.")


class SampleOutcome(ResponseModel):
    """What became of a test."""

    event_id: str
    outcome: str = Field(
        description="`delivered`, `later`, `refused`, `misconfigured` or `failed`."
    )
    status: int | None = Field(description="The status that was answered, if any was.")
    duration_ms: int
    reason: str | None = Field(description="Why it was not delivered.")
    response: str = Field(description="The beginning of what was answered.")
    remote_id: str | None = Field(description="What the receiver calls what it made of it.")
    remote_url: str | None = Field(description="Where a person can look at that.")


@dataclass(frozen=True, slots=True)
class ValidatedChange:
    """What a destination's settings are to be, and the revision that they were made from."""

    written: DestinationSpec
    revision: int


async def validate_new(call: RequestContext) -> DestinationSpec:
    """Return the destination as it can be stored; CallerError (422)."""
    body: NewDestination = call.body
    with _translate_setting_errors():
        return await call.services.registrar.judge(body.name, body.plugin, body.settings)


async def validate_change(call: RequestContext) -> ValidatedChange | None:
    """Return the settings as they can be stored, None where they stay; CallerError (422)."""
    destination = await call.services.database.read(_find_changeable, call)
    body: DestinationChange = call.body
    if not body.settings:
        return None
    with _translate_setting_errors():
        written = await call.services.registrar.amend(destination, body.settings)
    return ValidatedChange(written, destination.revision)


async def send_sample(call: RequestContext) -> SampleResult:
    """Send a sample, and return what became of it."""
    destination = await call.services.database.read(_find_living, call)
    body: SampleRequest = call.body
    return await call.services.samples.send(destination, body.event_type)


@contextmanager
def _translate_setting_errors() -> Iterator[None]:
    try:
        yield
    except InvalidDestinationError as error:
        raise invalid_request("body", [asdict(wrong) for wrong in error.wrong]) from None


def create_destination(connection: Connection, call: RequestContext) -> Response:
    """Create a destination, and answer it. Its secrets are kept encrypted."""
    written: DestinationSpec = call.prepared
    now = call.services.clock.now()
    try:
        made = delivery.create_destination(connection, written, call.principal.name, now)
    except NameTakenError:
        detail = f"There is a destination {written.name!r} already."
        raise refusal(ProblemType.NAME_TAKEN, 409, detail) from None
    return _respond(call, made, {"plugin": made.plugin, "settings": sorted(call.body.settings)})


def list_destinations(connection: Connection, call: RequestContext) -> Response:
    """Answer one page of the destinations, by name."""
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
    """Answer one destination, and how much rests for it; also one that was deleted."""
    destination = _find(connection, call)
    counts = delivery.count_waiting(connection, destination.name)
    return Response(_represent(destination, call) | counts)


def update_destination(connection: Connection, call: RequestContext) -> Response:
    """Change a destination's settings, stop it or let it go on, and answer it.

    New settings end a stop that came by itself.
    """
    body: DestinationChange = call.body
    judged: ValidatedChange | None = call.prepared
    destination = _find_changeable(connection, call, lock=True)
    if judged is not None and judged.revision != destination.revision:
        raise CallerError(409, "The destination was changed meanwhile; try again.")
    if judged is None and body.enabled is None:
        return Response(_represent(destination, call))
    written = None if judged is None else judged.written
    now = call.services.clock.now()
    changed = delivery.update_destination(connection, destination, written, body.enabled, now)
    if changed is destination:
        return Response(_represent(destination, call))
    action = {True: "destination.enable", False: "destination.disable", None: None}[body.enabled]
    if judged is None:
        return _respond(call, changed, {}, action)
    enabled = {} if body.enabled is None else {"enabled": body.enabled}
    return _respond(call, changed, {"settings": sorted(body.settings or ()), **enabled})


def delete_destination(connection: Connection, call: RequestContext) -> Response:
    """Delete a destination, and answer it; what waits for it is dead, with that as the reason."""
    destination = _find(connection, call, lock=True)
    if destination.state is DestinationState.DELETED:
        return Response(_represent(destination, call))
    # What plugins.toml names no more can be changed nowhere else
    if destination.reason is not StopReason.REMOVED:
        _require_managed_here(destination)
    deleted = delivery.delete_destination(connection, destination, call.services.clock.now())
    return _respond(call, deleted, {})


def resume_destination(connection: Connection, call: RequestContext) -> Response:
    """End an automatic stop, send the deliveries on hold, and return the destination."""
    destination = _find_living(connection, call, lock=True)
    if destination.state is DestinationState.ACTIVE:
        return Response(_represent(destination, call))
    if destination.reason in _NOT_RESUMED:
        raise CallerError(409, _NOT_RESUMED[destination.reason])
    resumed = delivery.resume_destination(connection, destination, call.services.clock.now())
    return _respond(call, resumed, {"reason": destination.reason})


def send_test_event(_connection: Connection, call: RequestContext) -> Response:
    """Answer what became of a clearly marked event that was sent there now, once.

    Nothing of it is stored. It is sent in whatever state the destination is, and its filters do
    not matter.
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
    StopReason.MANUAL: "The destination was disabled by someone; change it to `enabled`.",
    StopReason.REMOVED: "plugins.toml does not name the destination any more; apply one that does.",
}
_MANAGED = {
    ManagedBy.FILE: "plugins.toml says what this destination is; change it there and apply it.",
    ManagedBy.PLUGIN: "The destination is there as long as its plugin is enabled in plugins.toml.",
}


def _find(connection: Connection, call: RequestContext, *, lock: bool = False) -> Destination:
    destination = load_destination(connection, call.path["name"], lock=lock)
    if destination is None:
        raise not_found("destination")
    return destination


def _find_living(
    connection: Connection, call: RequestContext, *, lock: bool = False
) -> Destination:
    destination = _find(connection, call, lock=lock)
    if destination.state is DestinationState.DELETED:
        raise CallerError(409, "The destination was deleted; create it anew.")
    return destination


def _find_changeable(
    connection: Connection, call: RequestContext, *, lock: bool = False
) -> Destination:
    destination = _find_living(connection, call, lock=lock)
    _require_managed_here(destination)
    return destination


def _require_managed_here(destination: Destination) -> None:
    if destination.managed_by is not ManagedBy.API:
        raise refusal(ProblemType.MANAGED_BY_FILE, 409, _MANAGED[destination.managed_by])


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
    settings, secrets = call.services.registrar.shown(destination)
    standing = destination.standing
    return {
        "name": destination.name,
        "plugin": destination.plugin,
        "managed_by": destination.managed_by,
        "state": destination.state,
        "reason": destination.reason,
        "detail": destination.detail,
        "settings": settings,
        "secrets": secrets,
        "failures": standing.failures,
        "failing_since": isoformat_or_none(standing.failing_since),
        "held_until": isoformat_or_none(standing.held_until),
        "created_by": destination.created_by,
        "created_at": isoformat(destination.created_at),
        "updated_at": isoformat(destination.updated_at),
        "revision": destination.revision,
    }
