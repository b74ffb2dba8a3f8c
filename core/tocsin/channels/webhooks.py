"""Webhooks from receivers: the secret in `Authorization`, and the body."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Any

from tocsin.errors import CredentialsRefused
from tocsin.hookspecs import PushRequest
from tocsin.json_codec import parse_json
from tocsin.providers import extract_token


def require_webhook_token(settings: Any, request: PushRequest) -> None:
    """Raise `CredentialsRefused` unless a webhook contains the secret `settings.webhook_secret`.

    The webhook contains the secret as a bearer token, or as the password for Basic authentication.
    """
    secret = settings.webhook_secret
    if secret is None:
        raise CredentialsRefused("the destination does not accept webhooks")
    given = extract_token(request.headers.get("Authorization", ""))
    if not hmac.compare_digest(given, secret.get_secret_value().encode()):
        raise CredentialsRefused("the webhook's Authorization header is missing or wrong")


def parse_webhook_body(request: PushRequest) -> Mapping[str, Any]:
    """Return an authentic webhook's body, or an empty mapping if it is not a JSON object."""
    try:
        found = parse_json(request.body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
