"""Symmetric signatures of Standard Webhooks 1.0.0: secrets, and the headers that they make."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterable
from datetime import datetime

_PREFIX = "whsec_"
_KEY_LENGTHS = range(24, 65)
_WHAT_IS_RIGHT = "a webhook secret is whsec_ and the base64 of 24 to 64 random bytes"


def decode_secret(secret: str) -> bytes:
    """Return the key that `secret` spells; ValueError, without showing it, if it spells none.

    The prefix may be missing, as may the padding of the base64.
    """
    text = secret.removeprefix(_PREFIX).rstrip("=")
    try:
        key = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except ValueError:
        raise ValueError(_WHAT_IS_RIGHT) from None
    if len(key) not in _KEY_LENGTHS:
        raise ValueError(f"{_WHAT_IS_RIGHT}; this one has {len(key)}")
    return key


def _sign(key: bytes, signed: bytes) -> str:
    return "v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()


def signature_headers(
    keys: Iterable[bytes], event_id: str, moment: datetime, body: bytes
) -> dict[str, str]:
    """Return the three headers that let a receiver holding any one of `keys` verify `body`."""
    timestamp = str(int(moment.timestamp()))
    signed = b".".join((event_id.encode(), timestamp.encode(), body))
    return {
        "webhook-id": event_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": " ".join(_sign(key, signed) for key in keys),
    }
