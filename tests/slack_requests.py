"""Requests that Slack sends when people press buttons.

They have the members that Slack documents for `block_actions`; no Slack has sent them.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

SIGNING_SECRET = "8f742231b10e8888abcd99yyyzzz85a5"
ANA = "U0123456789"
REPLY_URL = "https://hooks.slack.com/actions/T0123/5000000001/secretOfTheReply"


def make_action(value: str, *, is_menu: bool = False) -> dict[str, Any]:
    """Return one pressed button, or one chosen option of the menu."""
    text = {"type": "plain_text", "text": "Acknowledge", "emoji": False}
    common = {"block_id": "Zq1", "action_ts": "1764331200.123456"}
    if is_menu:
        chosen = {"text": text, "value": value}
        menu = {"type": "static_select", "action_id": "tocsin_disposition"}
        return {**menu, **common, "selected_option": chosen, "placeholder": text}
    return {"type": "button", "action_id": "tocsin_any", **common, "text": text, "value": value}


def make_payload(*actions: dict[str, Any], user: str = ANA, **members: Any) -> dict[str, Any]:
    """Return what Slack sends for these actions."""
    message = {"type": "message", "bot_id": "B0123", "ts": "1764331100.000100", "text": "An alert"}
    return {
        "type": "block_actions",
        "user": {"id": user, "username": "ana.b", "name": "ana.b", "team_id": "T0123"},
        "api_app_id": "A0123",
        "token": "a token that is not used",
        "container": {"type": "message", "message_ts": message["ts"], "channel_id": "C0123456789"},
        "trigger_id": "13345224609.738474920.8088930838d88f008e0",
        "team": {"id": "T0123", "domain": "example"},
        "enterprise": None,
        "is_enterprise_install": False,
        "channel": {"id": "C0123456789", "name": "soc-alerts"},
        "message": message,
        "state": {"values": {}},
        "response_url": REPLY_URL,
        "actions": list(actions),
    } | members


def encode_form(payload: Any) -> bytes:
    """Return the body of a request."""
    return urlencode({"payload": json.dumps(payload)}).encode()


def sign(body: bytes, at: datetime, secret: str = SIGNING_SECRET) -> dict[str, str]:
    """Return the headers of a request."""
    time = str(int(at.timestamp()))
    digest = hmac.digest(secret.encode(), f"v0:{time}:".encode() + body, hashlib.sha256)
    signature = {"X-Slack-Signature": f"v0={digest.hex()}", "X-Slack-Request-Timestamp": time}
    return signature | {"Content-Type": "application/x-www-form-urlencoded"}
