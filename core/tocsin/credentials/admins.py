"""Admins: bearer tokens (JWT, RFC 7519) signed with a key that signs nothing else."""

from __future__ import annotations

from datetime import timedelta

import jwt
from sqlalchemy import Connection
from ulid import ULID

from tocsin.clock import Clock
from tocsin.credentials.signing_keys import find_signing_key, obtain_signing_key
from tocsin.credentials.vault import Vault
from tocsin.errors import OperatorError, TocsinError

_TYPE = "tocsin-admin+jwt"
_ALGORITHM = "EdDSA"
_PURPOSE = "admin"
_ISSUER = "tocsin"
_AUDIENCE = "tocsin-admin"
_CLAIMS = ("iss", "aud", "sub", "role", "iat", "exp", "jti")
_LONGEST = 4096
_LONGEST_LIFE = timedelta(days=365)


class TokenError(TocsinError):
    """A token that admits nobody; `expired` only where its signature was verified."""

    def __init__(self, *, expired: bool = False) -> None:
        super().__init__("expired" if expired else "invalid")
        self.expired = expired


class Admins:
    """Issues admin tokens and verifies them."""

    def __init__(self, vault: Vault, clock: Clock) -> None:
        self._vault = vault
        self._clock = clock

    def issue(self, connection: Connection, *, name: str, expires_in: timedelta) -> str:
        """Return a token for the admin `name`; to be called in a write."""
        if not timedelta(seconds=1) <= expires_in <= _LONGEST_LIFE:
            raise OperatorError("an admin token lives for at least 1s and at most 365d")
        now = self._clock.now()
        claims = {
            "iss": _ISSUER,
            "aud": _AUDIENCE,
            "sub": name,
            "role": "admin",
            "iat": int(now.timestamp()),
            "exp": int((now + expires_in).timestamp()),
            "jti": str(ULID()),
        }
        key = obtain_signing_key(connection, self._vault, _PURPOSE, now)
        return jwt.encode(claims, key, algorithm=_ALGORITHM, headers={"typ": _TYPE})

    def verify(self, connection: Connection, token: str) -> str:
        """Return the name of the admin whose token this is; raises TokenError."""
        if not is_admin_token(token):
            raise TokenError
        key = find_signing_key(connection, self._vault, _PURPOSE)
        if key is None:
            raise TokenError
        try:
            claims = jwt.decode(
                token,
                key.public_key(),
                algorithms=[_ALGORITHM],
                audience=_AUDIENCE,
                issuer=_ISSUER,
                # The times are judged below, by the injected clock.
                options={
                    "require": list(_CLAIMS),
                    "strict_aud": True,
                    "verify_exp": False,
                    "verify_iat": False,
                    "verify_nbf": False,
                },
            )
        except jwt.InvalidTokenError:
            raise TokenError from None
        if claims["role"] != "admin" or not isinstance(claims["exp"], int):
            raise TokenError
        if self._clock.now().timestamp() >= claims["exp"]:
            raise TokenError(expired=True)
        return str(claims["sub"])


def is_admin_token(token: str) -> bool:
    """Return whether this looks like an admin token (RFC 8725 section 3.11); does no I/O."""
    if len(token) > _LONGEST or not token.isascii():
        return False
    try:
        header = jwt.get_unverified_header(token)
    except (jwt.InvalidTokenError, RecursionError):
        return False
    return header.get("typ") == _TYPE and header.get("alg") == _ALGORITHM
