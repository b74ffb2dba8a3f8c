"""Requests that Slack sends when people press buttons.

Signatures: https://docs.slack.dev/authentication/verifying-requests-from-slack. Payloads:
https://docs.slack.dev/reference/interaction-payloads/block_actions-payload.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tocsin import (
    CredentialsRefused,
    MessageAction,
    PushRequest,
    encode_header,
    is_recent_time,
    parse_json,
)
from tocsin_plugins.slack.buttons import PREFIX, ButtonValues
from tocsin_plugins.slack.settings import USER_ID, Settings, is_official

_MOST_FIELDS = 20


def parse_interaction(
    settings: Settings, request: PushRequest, now: datetime, public_url: str
) -> MessageAction | None:
    """Return which of Tocsin's buttons a person pressed; None for another interaction.

    Raises `CredentialsRefused` unless Slack signed the request with the app's secret.
    """
    if settings.signing_secret is None:
        raise CredentialsRefused("the destination does not have buttons")
    secret = settings.signing_secret.get_secret_value()
    signature = _verify(secret, request, now)
    payload = _parse_payload(request.body)
    match payload:
        case {
            "type": "block_actions",
            "user": {"id": str(user)},
            "actions": [{"action_id": str(action_id)} as pressed],
        } if action_id.startswith(PREFIX) and re.fullmatch(USER_ID, user):
            pass
        case _:
            return None
    found = ButtonValues(public_url, secret).read(_get_value(pressed))
    is_enabled = found is not None and found[0] in settings.buttons
    return MessageAction(
        request_id=signature,
        user_id=user,
        person=settings.people.get(user),
        button=found[0] if found and is_enabled else None,
        incident_number=found[1] if found else 0,
        reply_to=_find_reply_url(payload, settings),
    )


def _verify(secret: str, request: PushRequest, now: datetime) -> str:
    """Return the signature of an authentic and recent request; raises `CredentialsRefused`."""
    given = request.headers.get("X-Slack-Signature", "")
    time = request.headers.get("X-Slack-Request-Timestamp", "")
    signed = encode_header(f"v0:{time}:") + request.body
    expected = f"v0={hmac.digest(secret.encode(), signed, hashlib.sha256).hex()}"
    if not hmac.compare_digest(encode_header(given), expected.encode()):
        raise CredentialsRefused("the header X-Slack-Signature is missing or wrong")
    if not is_recent_time(time, now):
        raise CredentialsRefused("the time of Slack's signature is not recent")
    return expected


def _parse_payload(body: bytes) -> Mapping[str, Any]:
    """Return the JSON object from the form; empty if the form does not contain one."""
    try:
        fields = parse_qs(body.decode(), strict_parsing=True, max_num_fields=_MOST_FIELDS)
        [text] = fields["payload"]
        found = parse_json(text.encode())
    except (ValueError, KeyError):
        return {}
    return found if isinstance(found, dict) else {}


def _get_value(pressed: Mapping[str, Any]) -> object:
    match pressed:
        case {"selected_option": {"value": value}} | {"value": value}:
            return value
    return None


def _find_reply_url(payload: Mapping[str, Any], settings: Settings) -> str | None:
    """Return the URL for replies; None unless it leads to Slack or to the host in `api_url`."""
    url = payload.get("response_url")
    if not isinstance(url, str):
        return None
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    own = urlsplit(settings.api_url)
    is_own = (parts.scheme, parts.netloc) == (own.scheme, own.netloc)
    is_slack = parts.scheme == "https" and is_official(parts.hostname)
    return url if is_own or (is_slack and parts.username is None) else None
