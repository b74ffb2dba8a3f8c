"""What every bearer token has in common: bounds, and how a signature is checked (RFC 8725)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import jwt

from tocsin.credentials.signing_keys import PublicKey
from tocsin.errors import TocsinError

LONGEST = 8192
"""How many characters of a token are looked at."""


class TokenError(TocsinError):
    """A token that admits nobody; `expired` only where its signature was verified."""

    def __init__(self, *, expired: bool = False) -> None:
        super().__init__("expired" if expired else "invalid")
        self.expired = expired


def read_header(token: str) -> dict[str, Any]:
    """Return the token's header, not verified; empty where this is no token. Does no I/O."""
    if len(token) > LONGEST or not token.isascii():
        return {}
    try:
        header = jwt.get_unverified_header(token)
    except (jwt.InvalidTokenError, RecursionError):
        return {}
    # It names a key to databases, which do not look for every text
    return header if header.get("kid", "").isprintable() else {}


def verify_claims(
    token: str, key: PublicKey, *, issuer: str, audience: str, required: Sequence[str]
) -> dict[str, Any]:
    """Return the claims of a token that `key` signed; raises TokenError.

    The times are left to the caller, who has the clock.
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
    """Return when a token ends that was verified before."""
    claims = jwt.decode(token, options={"verify_signature": False})
    return datetime.fromtimestamp(claims["exp"], UTC)
