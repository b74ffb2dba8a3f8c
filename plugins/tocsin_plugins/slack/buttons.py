"""Buttons of incident messages.

A button's value names an incident and proves that Tocsin created the button for this incident. The
proof is necessary because anyone who has the bot token can post messages with buttons. Slack's
documentation: https://docs.slack.dev/reference/block-kit/blocks/actions-block
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Sequence
from typing import Any

from tocsin import Delivery, EventType, MessageButton

PREFIX = "tocsin_"
"""Prefix of the action IDs."""
_MOST_BLOCKS = 50
_LABELS = {
    MessageButton.ACKNOWLEDGE: "Acknowledge",
    MessageButton.ASSIGN: "Assign to me",
    MessageButton.TRUE_POSITIVE: "True positive",
    MessageButton.BENIGN_TRUE_POSITIVE: "Benign true positive",
    MessageButton.FALSE_POSITIVE: "False positive",
    MessageButton.DUPLICATE: "Duplicate",
    MessageButton.UNDETERMINED: "Undetermined",
}
_VALUE = re.compile(r"([a-z-]{1,30}):(0|[1-9][0-9]{0,17}):([A-Za-z0-9_-]{22})")


class ButtonValues:
    """Button values that are signed with the Slack app's signing secret.

    Destinations that share an app accept each other's buttons, because Slack sends all of an app's
    requests to one URL. The signature covers Tocsin's public URL, because another Tocsin
    installation that shares the app has different incidents.
    """

    def __init__(self, public_url: str, signing_secret: str) -> None:
        self._public_url = public_url
        self._key = signing_secret.encode()

    def make(self, button: MessageButton, number: int) -> str:
        """Return a button's value: at most 75 characters, Slack's limit for menu options."""
        return f"{button}:{number}:{self._sign(button, number)}"

    def read(self, value: object) -> tuple[MessageButton, int] | None:
        """Return the button and the incident's number; None unless `make` created the value."""
        match = _VALUE.fullmatch(value) if isinstance(value, str) else None
        if match is None:
            return None
        try:
            button, number = MessageButton(match[1]), int(match[2])
        except ValueError:
            return None
        is_own = hmac.compare_digest(self._sign(button, number), match[3])
        return (button, number) if is_own else None

    def _sign(self, button: MessageButton, number: int) -> str:
        # Slack signs texts that begin with v0, so none of its signatures can equal one of these
        signed = f"tocsin-button:{button}:{number}:{self._public_url}".encode()
        digest = hmac.digest(self._key, signed, hashlib.sha256)[:16]
        return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def add_buttons(
    message: dict[str, Any],
    delivery: Delivery,
    buttons: Sequence[MessageButton],
    values: ButtonValues,
) -> None:
    """Add the buttons to an incident's message, before the last line.

    Other messages do not change, nor do messages that already have the maximum number of blocks.
    """
    event, blocks = delivery.event, message.get("blocks")
    number = event.data.get("incident_number")
    if event.template_type is not EventType.INCIDENT_ALERT or not isinstance(number, int):
        return
    if not isinstance(blocks, list) or not 0 < len(blocks) < _MOST_BLOCKS:
        return
    block = {"type": "actions", "elements": _build_elements(buttons, number, values)}
    message["blocks"] = [*blocks[:-1], block, blocks[-1]]


def _build_elements(
    buttons: Sequence[MessageButton], number: int, values: ButtonValues
) -> list[dict[str, Any]]:
    """Return the buttons, and one menu that contains all dispositions."""
    elements: list[dict[str, Any]] = [
        {
            "type": "button",
            "action_id": f"{PREFIX}{button}",
            "text": _label(button),
            "value": values.make(button, number),
        }
        for button in buttons
        if button.disposition is None
    ]
    options = [
        {"text": _label(button), "value": values.make(button, number)}
        for button in buttons
        if button.disposition is not None
    ]
    if options:
        placeholder = {"type": "plain_text", "text": "Set disposition", "emoji": False}
        menu = {"type": "static_select", "action_id": f"{PREFIX}disposition"}
        elements.append({**menu, "placeholder": placeholder, "options": options})
    return elements


def _label(button: MessageButton) -> dict[str, Any]:
    return {"type": "plain_text", "text": _LABELS[button], "emoji": False}
