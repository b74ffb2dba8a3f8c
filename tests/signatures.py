"""Independent verification of Standard Webhooks signatures."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.hmac import HMAC
from standardwebhooks import Webhook


def svix_webhook(secret: str) -> Any:
    """Return what verifies with `svix`, which takes long to import."""
    from svix import Webhook as SvixWebhook

    return SvixWebhook(secret)


def verify(secret: str, body: bytes, headers: Mapping[str, str]) -> None:
    """Return where both find a `v1` signature of this secret; raises what they do elsewhere."""
    Webhook(secret).verify(body, dict(headers))
    key = base64.b64decode(secret.removeprefix("whsec_"))
    content = b".".join(
        (headers["webhook-id"].encode(), headers["webhook-timestamp"].encode(), body)
    )
    for signature in headers["webhook-signature"].split():
        version, _, value = signature.partition(",")
        if version == "v1" and _is_of(key, content, base64.b64decode(value)):
            return
    raise ValueError("no signature is of this secret")


def _is_of(key: bytes, content: bytes, signature: bytes) -> bool:
    mac = HMAC(key, hashes.SHA256())
    mac.update(content)
    return mac.finalize() == signature
