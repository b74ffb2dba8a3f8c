"""Webhook secrets: signatures (Standard Webhooks 1.0.0), and secrets in bodies and URLs."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, Self
from urllib.parse import SplitResult

import orjson
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pydantic import SecretStr

from tocsin import Misconfigured, decode_webhook_key

_SECRET_FORMAT = "expected whsec_ followed by the base64 of 24 to 64 random bytes"  # noqa: S105
_SEED_LENGTH = 32
_BLOCK = 64  # bytes, of SHA-256
_INNER_PAD = bytes(byte ^ 0x36 for byte in range(256))
_OUTER_PAD = bytes(byte ^ 0x5C for byte in range(256))
_KEY_FORMAT = (
    "expected whsk_ followed by the base64 of an ed25519 seed and its public key (64 bytes), or of "
    "the seed alone (32 bytes)"
)
MIN_SECRET_LENGTH = 8
"""Minimum length of a secret; shorter ones cannot be told apart from other response text."""


class Signer(Protocol):
    """A key for one of the standard's signature schemes."""

    def sign(self, content: bytes) -> str:
        """Return the signature of `content` in header form: `<scheme>,<base64>`."""
        ...

    def describe(self) -> str:
        """Describe what receivers verify with, without revealing a secret."""
        ...


@dataclass(frozen=True, slots=True)
class SharedSecret:
    """Signs with HMAC-SHA256 (`v1`); receivers verify with the same secret."""

    key: bytes = field(repr=False)
    _inner: Any = field(init=False, repr=False, compare=False)
    _outer: Any = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Hash the HMAC pads (RFC 2104) once instead of for each delivery.

        A key is never longer than a block, 64 bytes.
        """
        block = self.key.ljust(_BLOCK, b"\0")
        object.__setattr__(self, "_inner", hashlib.sha256(block.translate(_INNER_PAD)))
        object.__setattr__(self, "_outer", hashlib.sha256(block.translate(_OUTER_PAD)))

    @classmethod
    def decode(cls, text: str) -> Self:
        """Return the secret in `text`; ValueError, without quoting it, if it is invalid.

        Prefix and base64 padding are optional.
        """
        return cls(decode_webhook_key(text, "whsec_", range(24, 65), _SECRET_FORMAT))

    def sign(self, content: bytes) -> str:
        """Return `v1,` and the HMAC."""
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(content)
        outer.update(inner.digest())
        return "v1," + _base64(outer.digest())

    def describe(self) -> str:
        """Describe the secret by its length."""
        return f"a secret of {8 * len(self.key)} bits"


@dataclass(frozen=True, slots=True)
class Ed25519Signer:
    """Signs with ed25519 (`v1a`); receivers verify with its public key."""

    key: Ed25519PrivateKey = field(repr=False)

    @classmethod
    def decode(cls, text: str) -> Self:
        """Return the key in `text`; ValueError, without quoting it, if it is invalid.

        Prefix and base64 padding are optional.
        """
        decoded = decode_webhook_key(text, "whsk_", (_SEED_LENGTH, 2 * _SEED_LENGTH), _KEY_FORMAT)
        key = Ed25519PrivateKey.from_private_bytes(decoded[:_SEED_LENGTH])
        if decoded[_SEED_LENGTH:] not in (b"", key.public_key().public_bytes_raw()):
            raise ValueError(f"{_KEY_FORMAT}; the public key does not match the seed")
        return cls(key)

    def sign(self, content: bytes) -> str:
        """Return `v1a,` and the signature."""
        return "v1a," + _base64(self.key.sign(content))

    def describe(self) -> str:
        """Return the public key: `whpk_` followed by base64."""
        return "whpk_" + _base64(self.key.public_key().public_bytes_raw())


def signature_headers(
    signers: Iterable[Signer], event_id: str, moment: datetime, body: bytes
) -> dict[str, str]:
    """Return the three headers with which a receiver verifies `body`, signed by all `signers`."""
    timestamp = str(int(moment.timestamp()))
    content = b".".join((event_id.encode(), timestamp.encode(), body))
    return {
        "webhook-id": event_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": " ".join(signer.sign(content) for signer in signers),
    }


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def insert_secrets(body: bytes, secrets: Mapping[str, SecretStr]) -> bytes:
    """Return `body` with these members, which replace members with the same names.

    Raises `Misconfigured` if there are secrets and the body is not a JSON object.
    """
    if not secrets:
        return body
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        document = None
    if not isinstance(document, dict):
        raise Misconfigured("body_secrets requires a template that renders a JSON object")
    return orjson.dumps(
        document | {name: text.get_secret_value() for name, text in secrets.items()}
    )


def list_secret_parts(parts: SplitResult) -> list[str]:
    """Return the parts of a URL that may be secret: the path and the query values."""
    values = (pair.partition("=")[2] for pair in parts.query.split("&"))
    return [value for value in (parts.path, *values) if len(value) >= MIN_SECRET_LENGTH]
