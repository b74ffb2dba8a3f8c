"""Sending many deliveries again, in the background."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema
from sqlalchemy import Connection

from tocsin import delivery
from tocsin.delivery import REPLAYABLE_STATES, DeliveryState, ReplayExtent, ReplayState
from tocsin.fields import any_case
from tocsin.model import EventType
from tocsin.web.context import AuditedChange, RequestContext, Response
from tocsin.web.pagination import PageCursor
from tocsin.web.parsing import BodyModel, QueryModel, ResponseModel, invalid_request
from tocsin.web.routes.deliveries import DestinationName
from tocsin.web.routes.fields import Limit, Timestamp, cursor_field, not_found, page_response

LIST = "r"
_PREFIX = "rpl_"


Replayable = Annotated[
    DeliveryState,
    BeforeValidator(
        lambda value: DeliveryState.parse_replayable(value) if isinstance(value, str) else value
    ),
    WithJsonSchema({"type": "string", "enum": list(REPLAYABLE_STATES)}),
]
"""A state that bulk replays take, in any case."""


class NewReplay(BodyModel):
    """Which deliveries to send again."""

    state: Replayable = Field(
        default=DeliveryState.DEAD,
        description="Only deliveries in this state. `on_hold` selects those that wait for a "
        "configuration fix, not those whose destination is not active.",
    )
    destination: DestinationName | None = Field(
        default=None, description="Only those to this destination."
    )
    event_type: Annotated[EventType, any_case(EventType)] | None = Field(
        default=None, description="Only those of this kind of event."
    )
    since: Timestamp | None = Field(
        default=None, description="Only those whose event happened then or later."
    )
    until: Timestamp | None = Field(
        default=None, description="Only those whose event happened before."
    )


class ReplayFilter(BaseModel):
    """Which deliveries a replay is of."""

    model_config = ConfigDict(extra="forbid")

    state: Replayable
    destination: str | None
    event_type: EventType | None
    since: datetime | None
    until: datetime | None


class Replay(ResponseModel):
    """Many deliveries that are sent again, and how far that has come."""

    id: str
    state: ReplayState
    filter: ReplayFilter
    total: int = Field(description="How many matched when it was made.")
    replayed: int = Field(description="How many were made due so far.")
    created_by: str
    created_at: datetime
    updated_at: datetime
    finished_at: datetime | None


class ReplayQuery(QueryModel):
    """How many at once."""

    limit: Limit = 50
    cursor: cursor_field(LIST) | None = None  # type: ignore[valid-type]


class ReplayList(ResponseModel):
    """One page of replays."""

    replays: list[Replay]
    total: int
    next_cursor: str | None = Field(description="For `cursor`; null on the last page.")


async def measure_replay(call: RequestContext) -> ReplayExtent:
    """Return what the replay is of; counting may take long, and holds up nobody so."""
    body: NewReplay = call.body
    wanted = delivery.DeliveryFilter(
        destination=body.destination,
        event_type=body.event_type,
        since=body.since,
        until=body.until,
    )
    try:
        return await call.services.database.read(delivery.measure_replay, body.state, wanted)
    except delivery.NoSuchDestinationError as error:
        raise invalid_request("body", [{"path": "destination", "detail": str(error)}]) from None


def create_replay(connection: Connection, call: RequestContext) -> Response:
    """Have all deliveries sent again that match now, in the background, and answer the replay."""
    now = call.services.clock.now()
    made = delivery.create_replay(connection, call.prepared, call.principal.name, now)
    details = {**made["filter"], "total": made["total"]}
    return Response(made, change=AuditedChange(target=f"replay:{made['id']}", details=details))


def list_replays(connection: Connection, call: RequestContext) -> Response:
    """Answer one page of the replays, the newest first."""
    query: ReplayQuery = call.query
    before = _PREFIX + query.cursor.before if query.cursor else None
    page = delivery.list_replays(connection, limit=query.limit, before=before)
    content = {"replays": page.replays, "total": page.total}
    following = PageCursor(LIST, page.next.removeprefix(_PREFIX)) if page.next else None
    return page_response(call, content, following)


def get_replay(connection: Connection, call: RequestContext) -> Response:
    """Answer one replay, with how far it has come."""
    return Response(_find(connection, call))


def cancel_replay(connection: Connection, call: RequestContext) -> Response:
    """End a replay where it is, and answer it; one that has ended stays as it is."""
    id_, now = call.path["replay_id"], call.services.clock.now()
    cancelled = delivery.cancel_replay(connection, id_, now)
    found = _find(connection, call)
    change = AuditedChange(target=f"replay:{id_}", details={"replayed": found["replayed"]})
    return Response(found, change=change if cancelled else None)


def _find(connection: Connection, call: RequestContext) -> dict[str, Any]:
    found = delivery.load_replay(connection, call.path["replay_id"])
    if found is None:
        raise not_found("replay")
    return found
