"""Endpoint for buttons that people press in chat messages."""

from __future__ import annotations

from dataclasses import dataclass

import structlog
from sqlalchemy import Connection

from tocsin import audit, incidents
from tocsin.errors import InvalidInputError
from tocsin.hookspecs import MessageAction
from tocsin.incidents import KEEP, Author, TriageUpdate
from tocsin.model import DispositionSource, MessageButton
from tocsin.web.context import AccessRole, Endpoint, RequestContext, Response
from tocsin.web.dispatch import build_audit_entry
from tocsin.web.idempotency import (
    AlreadyApplied,
    IdempotentRequest,
    find_stored_response,
    store_response,
)
from tocsin.web.oauth_endpoint import FORM_MEDIA_TYPE
from tocsin.web.problems import PATH_NOT_FOUND
from tocsin.web.schemas.message_actions import MessageActionForm
from tocsin.web.schemas.ticket_events import EventReceipt
from tocsin.web.webhooks import admit_webhook

_ACCEPTED = Response({"status": "accepted"})
_log = structlog.get_logger()


async def push_message_action(call: RequestContext) -> Response:
    """Triage an incident after a person has pressed a button in one of Tocsin's chat messages.

    Only people whom the operator has listed for the destination can triage. The response is the
    same for everybody. The person who pressed the button gets the result as a message.
    """
    name, inbox = call.path["destination"], call.services.destinations.message_actions
    action = await admit_webhook(call, FORM_MEDIA_TYPE, inbox.authenticate)
    if action is not None and (text := await _respond(call, name, action)):
        await inbox.reply(name, action, text)
    return _ACCEPTED


async def _respond(call: RequestContext, name: str, action: MessageAction) -> str | None:
    """Triage the incident, and return the message to the person; None for a repeated request."""
    if action.person is None:
        _log.warning("button refused", destination=name, user=action.user_id)
        return (
            "You are not permitted to triage incidents with these buttons. Ask the person who "
            f"operates Tocsin to add your user ID {action.user_id} to the setting `people` of the "
            f"destination {name}."
        )
    if action.button is None:
        return "This button is no longer valid. Use the latest message or Tocsin's console."
    if action.incident_number == 0:
        return "The button works. This is a test message, so no incident has changed."
    press = _ButtonPress(call, name, action, action.person, action.button)
    try:
        return await call.services.database.write(press.apply)
    except AlreadyApplied:  # by a concurrent copy of the request
        return None
    finally:
        call.services.shared_results.expire()


@dataclass(frozen=True, slots=True)
class _ButtonPress:
    """A button that an allowed person pressed."""

    call: RequestContext
    destination: str
    action: MessageAction
    person: str
    button: MessageButton

    def apply(self, connection: Connection) -> str | None:
        """Store the triage with its audit entry, once for each request, and return the result."""
        services, now = self.call.services, self.call.services.clock.now()
        # Destinations that share an app accept each other's requests, but each request once.
        attempt = IdempotentRequest("message-action", self.action.request_id)
        if find_stored_response(connection, attempt, now) is not None:
            return None
        number = self.action.incident_number
        if incidents.lock_incident(connection, number) is None:
            return f"There is no incident {number}."
        actor = f"destination:{self.destination}:{self.action.user_id}"
        author = Author(self.person, actor, DispositionSource.PERSON)
        try:
            changed = incidents.update_triage(
                connection,
                number,
                self._build_update(),
                author,
                now,
                public_url=services.public_url,
            )
        except InvalidInputError as error:
            return f"Incident {number}: {error}"
        if changed:
            entry = build_audit_entry(
                services,
                self.call.request,
                now,
                actor=actor,
                action="incident.triage",
                target=f"incident:{number}",
                details=changed,
            )
            audit.record(connection, entry)
        store_response(connection, attempt, _ACCEPTED, 200, now=now, secret=False)
        return f"Incident {number}: {self._describe(is_changed=bool(changed))}"

    def _build_update(self) -> TriageUpdate:
        if self.button is MessageButton.ACKNOWLEDGE:
            return TriageUpdate(acknowledged=True)
        if self.button is MessageButton.ASSIGN:
            return TriageUpdate(assignee=self.person)
        return TriageUpdate(disposition=self.button.disposition or KEEP)

    def _describe(self, *, is_changed: bool) -> str:
        already = "" if is_changed else "already "
        if self.button is MessageButton.ACKNOWLEDGE:
            return f"acknowledged by {self.person}." if is_changed else "already acknowledged."
        if self.button is MessageButton.ASSIGN:
            return f"{already}assigned to {self.person}."
        return f"the disposition is {already}{self.button.disposition}."


ENDPOINTS = (
    Endpoint(
        method="POST",
        path="/api/message-actions/{destination}",
        access=AccessRole.WEBHOOK,
        summary="Send a button press from a chat message",
        handler=push_message_action,
        body=MessageActionForm,
        is_form=True,
        response=EventReceipt,
        problems=(PATH_NOT_FOUND,),
    ),
)
