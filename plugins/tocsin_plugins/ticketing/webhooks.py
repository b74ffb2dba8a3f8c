"""Authentication of webhooks from trackers, and IDs in their bodies."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Sequence
from datetime import datetime

from tocsin import (
    SIGNATURE_TOLERANCE,
    CredentialsRefused,
    PushRequest,
    TicketSettings,
    decode_webhook_secret,
    encode_header,
    require_standard_signature,
)

_STANDARD = "whsec_"


def require_signature(settings: TicketSettings, request: PushRequest, header: str) -> None:
    """Raise `CredentialsRefused` unless a header has the body's signature: `sha256=` and hex."""
    digest = hmac.digest(_get_secret(settings), request.body, hashlib.sha256)
    _require_equal(request, header, f"sha256={digest.hex()}")


def require_timed_signature(
    settings: TicketSettings, request: PushRequest, header: str, time_header: str, now: datetime
) -> None:
    """Raise `CredentialsRefused` unless a header has a recent base64 signature of time and body."""
    given = request.headers.get(time_header, "")
    try:
        signed_at = datetime.fromisoformat(given)
        is_recent = abs(now - signed_at) <= SIGNATURE_TOLERANCE
    except (ValueError, TypeError, OverflowError):  # TypeError: a time without a zone
        is_recent = False
    digest = hmac.digest(_get_secret(settings), encode_header(given) + request.body, hashlib.sha256)
    _require_equal(request, header, base64.b64encode(digest).decode())
    if not is_recent:
        raise CredentialsRefused("the time of the webhook's signature is not recent")


def require_signing_token(settings: TicketSettings, request: PushRequest, now: datetime) -> None:
    """Raise `CredentialsRefused` unless the webhook has a recent Standard Webhooks signature."""
    try:
        key = decode_webhook_secret(_get_secret(settings).decode())
    except ValueError as error:
        raise CredentialsRefused(f"webhook_secret: {error}") from None
    require_standard_signature(request, key, now)


def require_secret(settings: TicketSettings, request: PushRequest, header: str) -> None:
    """Raise `CredentialsRefused` unless a header contains the secret."""
    _require_equal(request, header, _get_secret(settings).decode())


def is_standard_key(settings: TicketSettings) -> bool:
    """Return whether the secret is a Standard Webhooks key."""
    return _get_secret(settings).startswith(_STANDARD.encode())


def list_numbers(value: object) -> Sequence[str]:
    """Return an ID that is a number or digits; empty for any other value."""
    match value:
        case bool():
            return ()
        case int(number):
            return (str(number),)
        case str(text) if text.isascii() and text.isdigit():
            return (text,)
    return ()


def _get_secret(settings: TicketSettings) -> bytes:
    if settings.webhook_secret is None:
        raise CredentialsRefused("the destination does not accept webhooks")
    return settings.webhook_secret.get_secret_value().encode()


def _require_equal(request: PushRequest, header: str, expected: str) -> None:
    if not hmac.compare_digest(encode_header(request.headers.get(header, "")), expected.encode()):
        raise CredentialsRefused(f"the webhook's header {header} is missing or wrong")
