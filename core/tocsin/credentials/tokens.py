"""Parsing and signature checks of bearer tokens (RFC 8725)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import jwt

from tocsin.credentials.signing_keys import PublicKey
from tocsin.errors import TocsinError

LONGEST = 8192
"""Maximum length of a token in characters."""


class TokenError(TocsinError):
    """Invalid token; `expired` is set only if its signature was verified."""

    def __init__(self, *, expired: bool = False) -> None:
        super().__init__("expired" if expired else "invalid")
        self.expired = expired


def read_header(token: str) -> dict[str, Any]:
    """Return the unverified header of a token, empty if it is malformed. Does no I/O."""
    if len(token) > LONGEST or not token.isascii():
        return {}
    try:
        header = jwt.get_unverified_header(token)
    except (jwt.InvalidTokenError, RecursionError):
        return {}
    # Databases do not accept every text as a key ID
    return header if header.get("kid", "").isprintable() else {}


def verify_claims(
    token: str, key: PublicKey, *, issuer: str, audience: str, required: Sequence[str]
) -> dict[str, Any]:
    """Return the claims of a token that `key` signed; raises TokenError.

    The caller checks the times, because it has the clock.
    """
    try:
        return jwt.decode(
            token,
            key.pem,
            algorithms=[key.algorithm],
            audience=audience,
            issuer=issuer,
            options={
                "require": list(required),
                "strict_aud": True,
                "verify_exp": False,
                "verify_iat": False,
                "verify_nbf": False,
            },
        )
    except (jwt.InvalidTokenError, RecursionError):
        raise TokenError from None


def read_expiry(token: str) -> datetime:
    """Return the expiry of a token that was verified before."""
    claims = jwt.decode(token, options={"verify_signature": False})
    return datetime.fromtimestamp(claims["exp"], UTC)
