"""Buttons that people press in the messages of a channel."""

from __future__ import annotations

from dataclasses import dataclass

from tocsin.model import MessageButton


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageAction:
    """A button that a person pressed, as reported in an authentic request of the receiver."""

    request_id: str
    """ID of the request, unique among the requests to all destinations, such as its signature; at
    most 255 characters. A repeated request has no effect."""
    user_id: str
    """The receiver's ID of the person."""
    person: str | None
    """The person's name in Tocsin; None if the operator has not allowed the person to triage."""
    button: MessageButton | None
    """The button; None if another installation of Tocsin created the button, or if the operator has
    disabled the button."""
    incident_number: int
    """The number of the incident, which the channel must verify; 0 in test messages."""
    reply_to: str | None = None
    """The address to which `Channel.reply` sends the result; None if the person gets no reply."""
