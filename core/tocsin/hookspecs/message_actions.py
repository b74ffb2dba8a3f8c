"""Buttons that people press in the messages of a channel."""

from __future__ import annotations

from dataclasses import dataclass

from tocsin.model import MessageButton


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageAction:
    """A triage request that a person made with a button in a message; already authenticated."""

    request_id: str
    """A unique ID of the request, such as its signature. It must be unique across all destinations
    and have at most 255 characters. A repeated request has no effect."""
    user_id: str
    """The receiver's ID for the person."""
    person: str | None
    """The person's name in Tocsin; None if the operator does not allow the person to triage
    incidents."""
    button: MessageButton | None
    """The button; None if another installation of Tocsin created it or if the operator has disabled
    it."""
    incident_number: int
    """The number of the incident, which the channel must verify; 0 in test messages."""
    reply_to: str | None = None
    """Where `Channel.reply` sends the result; None if the person does not get a reply."""
