"""Webhooks of the description: the events that destinations receive."""

from __future__ import annotations

from typing import Any

from tocsin.events import ENVELOPES
from tocsin.model import EventType
from tocsin.web.openapi.schemas import reference

_SUMMARIES = {
    EventType.INCIDENT_ALERT: "A new incident with a severity of Medium or higher was synced, or "
    "an incident's severity rose to Medium or higher",
    EventType.INVESTIGATION_COMPLETED: "A run of a schedule completed",
    EventType.INVESTIGATION_FAILED: "A run of a schedule failed",
    EventType.SCHEDULE_DISABLED: "Tocsin disabled a schedule after too many consecutive failures",
}
_DESCRIPTION = (
    "Tocsin sends the event to every matching `webhook` destination, signed as in Standard "
    "Webhooks 1.0.0. The event can arrive more than once, with the same `webhook-id`. Events "
    "can arrive in any order."
)


def _header(name: str, description: str, example: object, **schema: object) -> dict[str, Any]:
    return {
        "name": name,
        "in": "header",
        "required": True,
        "description": description,
        "schema": schema,
        "example": example,
    }


_PARAMETERS = [
    _header(
        "webhook-id",
        "ID of the event, the same in every attempt.",
        "evt_01KAJD9V3N8Q4R5S6T7V8W9X0Y",
        type="string",
    ),
    _header(
        "webhook-timestamp",
        "Unix time of the attempt, in seconds.",
        1795239181,
        type="integer",
    ),
    _header(
        "webhook-signature",
        "Signatures, separated by spaces: `v1,` and the base64 of the HMAC-SHA256 of "
        "`<webhook-id>.<webhook-timestamp>.<body>`.",
        "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=",
        type="string",
    ),
]
_RESPONSES = {
    "2XX": {"description": "The delivery is complete. Respond before you process the event."},
    "410": {"description": "Tocsin disables the destination and keeps its pending deliveries."},
    "default": {
        "description": "Any other response, including a redirect, counts as a failure. Tocsin "
        "retries for about three days and respects `Retry-After`."
    },
}


def webhooks() -> dict[str, Any]:
    """Return one webhook for each kind of event."""
    return {kind.value: {"post": _webhook(kind)} for kind in EventType}


def _webhook(kind: EventType) -> dict[str, Any]:
    model = ENVELOPES[kind]
    content = {"schema": reference(model)}
    return {
        "operationId": kind.value,
        "summary": _SUMMARIES[kind],
        "description": _DESCRIPTION,
        "security": [],
        "parameters": _PARAMETERS,
        "requestBody": {"required": True, "content": {"application/json": content}},
        "responses": _RESPONSES,
    }
