"""Signatures of webhooks that senders create by Standard Webhooks 1.0.0.

Specification: https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Container, Mapping
from datetime import datetime, timedelta

from tocsin.errors import CredentialsRefused
from tocsin.hookspecs import PushRequest

SIGNATURE_TOLERANCE = timedelta(minutes=5)
"""How far a signature's time can differ from the current time: five minutes, as in the Standard
Webhooks libraries and as Slack recommends."""
_PREFIX = "whsec_"
_KEY_LENGTHS = range(24, 65)
_SECRET_FORMAT = "use whsec_ and 24 to 64 bytes in base64"  # noqa: S105 - no secret
_SIGNATURE = re.compile(r"v1,[A-Za-z0-9+/]{43}=")  # an HMAC-SHA256 in base64
_MOST_DIGITS = 12


def decode_webhook_key(text: str, prefix: str, lengths: Container[int], expected: str) -> bytes:
    """Return the bytes of a Standard Webhooks key.

    The prefix and the base64 padding are optional. Raises ValueError if the key is invalid. The
    message contains `expected`, which describes a valid key. It does not contain the key itself.
    """
    digits = text.removeprefix(prefix).rstrip("=")
    try:
        key = base64.b64decode(digits + "=" * (-len(digits) % 4), validate=True)
    except ValueError:
        raise ValueError(expected) from None
    if len(key) not in lengths:
        raise ValueError(f"{expected}; this one has {len(key)}")
    return key


def decode_webhook_secret(secret: str) -> bytes:
    """Return the key of a `whsec_` secret.

    Raises ValueError if the secret is invalid; the message does not contain the secret.
    """
    if not secret.startswith(_PREFIX):
        raise ValueError(_SECRET_FORMAT)
    return decode_webhook_key(secret, _PREFIX, _KEY_LENGTHS, _SECRET_FORMAT)


def require_standard_signature(request: PushRequest, key: bytes, now: datetime) -> None:
    """Raise `CredentialsRefused` unless a request has a recent Standard Webhooks signature.

    A signature is valid for five minutes before and after its time. To get the key, call
    `decode_webhook_secret`. The comparison takes constant time.
    """
    require_signature_headers(request.headers, now)
    names = ("webhook-id", "webhook-timestamp", "webhook-signature")
    identifier, timestamp, signatures = (request.headers[name] for name in names)
    signed = encode_header(f"{identifier}.{timestamp}.") + request.body
    expected = b"v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256))
    if not any(hmac.compare_digest(encode_header(each), expected) for each in signatures.split()):
        raise CredentialsRefused("the webhook has no valid signature")


def require_signature_headers(headers: Mapping[str, str], now: datetime) -> None:
    """Raise `CredentialsRefused` unless the headers are those of a recent signature.

    The body decides whether the signature is valid.
    """
    signatures = headers.get("webhook-signature", "").split()
    if not headers.get("webhook-id") or not any(map(_SIGNATURE.fullmatch, signatures)):
        raise CredentialsRefused("the webhook has no valid signature")
    if not is_recent_time(headers.get("webhook-timestamp", ""), now):
        raise CredentialsRefused("the time of the webhook's signature is not recent")


def is_recent_time(timestamp: str, now: datetime) -> bool:
    """Return whether a Unix time in seconds is at most five minutes before or after `now`."""
    if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= _MOST_DIGITS):
        return False
    return abs(now.timestamp() - int(timestamp)) <= SIGNATURE_TOLERANCE.total_seconds()


def encode_header(value: str) -> bytes:
    """Return the bytes of a header as they were sent, for signatures and comparisons.

    In a header's value, surrogates represent bytes that are not UTF-8 (PEP 383).
    """
    return value.encode("utf-8", "surrogateescape")
