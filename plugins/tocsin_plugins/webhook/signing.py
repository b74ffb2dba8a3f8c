"""Signatures of Standard Webhooks 1.0.0: both kinds of key, and the headers."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Container, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, Self

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_SECRET = "a webhook secret is whsec_ and the base64 of 24 to 64 random bytes"  # noqa: S105
_SEED_LENGTH = 32
_KEY = (
    "a signing key is whsk_ and the base64 of 64 bytes, an ed25519 seed and its public key, "
    "or of the 32 bytes of the seed alone"
)


class Signer(Protocol):
    """A key of one of the standard's schemes."""

    def sign(self, content: bytes) -> str:
        """Return the signature of `content` in header form: `<scheme>,<base64>`."""
        ...

    def describe(self) -> str:
        """Return what a receiver verifies with, without revealing a secret."""
        ...


@dataclass(frozen=True, slots=True)
class SharedSecret:
    """Signs with HMAC-SHA256 (`v1`); receivers verify with the same secret."""

    key: bytes = field(repr=False)

    @classmethod
    def decode(cls, text: str) -> Self:
        """Return the secret in `text`; ValueError, without quoting it, if it is invalid.

        Prefix and base64 padding are optional.
        """
        return cls(_decode(text, "whsec_", range(24, 65), _SECRET))

    def sign(self, content: bytes) -> str:
        """Return `v1,` and the HMAC."""
        return "v1," + _base64(hmac.digest(self.key, content, hashlib.sha256))

    def describe(self) -> str:
        """Return the length of the secret."""
        return f"a secret of {8 * len(self.key)} bits"


@dataclass(frozen=True, slots=True)
class SigningKey:
    """Signs with ed25519 (`v1a`); receivers verify with its public key."""

    key: Ed25519PrivateKey = field(repr=False)

    @classmethod
    def decode(cls, text: str) -> Self:
        """Return the key in `text`; ValueError, without quoting it, if it is invalid.

        Prefix and base64 padding are optional.
        """
        decoded = _decode(text, "whsk_", (_SEED_LENGTH, 2 * _SEED_LENGTH), _KEY)
        key = Ed25519PrivateKey.from_private_bytes(decoded[:_SEED_LENGTH])
        if decoded[_SEED_LENGTH:] not in (b"", key.public_key().public_bytes_raw()):
            raise ValueError(f"{_KEY}; its public key belongs to another seed")
        return cls(key)

    def sign(self, content: bytes) -> str:
        """Return `v1a,` and the signature."""
        return "v1a," + _base64(self.key.sign(content))

    def describe(self) -> str:
        """Return the public key: `whpk_` and base64."""
        return "whpk_" + _base64(self.key.public_key().public_bytes_raw())


def signature_headers(
    signers: Iterable[Signer], event_id: str, moment: datetime, body: bytes
) -> dict[str, str]:
    """Return the three headers with which a receiver verifies `body`, by any of `signers`."""
    timestamp = str(int(moment.timestamp()))
    content = b".".join((event_id.encode(), timestamp.encode(), body))
    return {
        "webhook-id": event_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": " ".join(signer.sign(content) for signer in signers),
    }


def _decode(text: str, prefix: str, lengths: Container[int], what_is_right: str) -> bytes:
    digits = text.removeprefix(prefix).rstrip("=")
    try:
        key = base64.b64decode(digits + "=" * (-len(digits) % 4), validate=True)
    except ValueError:
        raise ValueError(what_is_right) from None
    if len(key) not in lengths:
        raise ValueError(f"{what_is_right}; this one has {len(key)}")
    return key


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
