"""What a receiver would be sent for a delivery."""

from __future__ import annotations

from dataclasses import asdict

from pydantic import Field
from sqlalchemy import Connection

from tocsin import delivery
from tocsin.delivery import Destination, DestinationState, Preview, load_destination
from tocsin.model import Event
from tocsin.web.calls import RequestContext, Response
from tocsin.web.parsing import ResponseModel
from tocsin.web.routes.records import not_found

_DESTINATION_DELETED = "its destination was deleted"


class RenderedPart(ResponseModel):
    """A part of what is sent, such as the subject of a mail."""

    name: str
    content: str | None = Field(description="As the template renders it.")
    reason: str | None = Field(description="Why it cannot be rendered.")


class DeliveryBody(ResponseModel):
    """What a receiver would be sent for a delivery."""

    id: str
    destination: str
    template: str | None = Field(description="The receiver whose templates render it.")
    parts: list[RenderedPart] = Field(
        description="What the channel can send of it: without what that adds as it sends, such as "
        "a signature or secrets."
    )
    breaches: list[str] = Field(description="In what the parts are not what the receiver takes.")
    reason: str | None = Field(description="Why nothing is rendered.")


async def get_delivery_body(call: RequestContext) -> Response:
    """Answer what the destination's templates make of the event now.

    Both may have changed since an attempt.
    """
    name, event, destination = await call.services.database.read(_load_for_preview, call)
    if destination is None or destination.state is DestinationState.DELETED:
        shown = Preview(reason=_DESTINATION_DELETED)
    else:
        shown = call.services.samples.preview(destination, event)
    content = {
        "id": call.path["delivery_id"],
        "destination": name,
        "template": shown.template,
        "parts": [asdict(part) for part in shown.parts],
        "breaches": list(shown.breaches),
        "reason": shown.reason,
    }
    return Response(content)


def _load_for_preview(
    connection: Connection, call: RequestContext
) -> tuple[str, Event, Destination | None]:
    found = delivery.load_delivery(connection, call.path["delivery_id"])
    event = delivery.load_event(connection, call.path["delivery_id"])
    if found is None or event is None:
        raise not_found("delivery")
    name: str = found["destination"]
    return name, event, load_destination(connection, name)
