"""Admin tokens: bearer tokens (JWT, RFC 7519) signed with keys of their own."""

from __future__ import annotations

from datetime import timedelta

import jwt
from sqlalchemy import Connection, delete
from ulid import ULID

from tocsin.clock import Clock
from tocsin.credentials.console_sessions import end_sessions_by_kind
from tocsin.credentials.signing_keys import ALGORITHMS, Purpose, SigningKeys
from tocsin.credentials.tokens import TokenError, read_header, verify_claims
from tocsin.credentials.vault import Vault
from tocsin.errors import OperatorError
from tocsin.store.tables import passkey_links, sign_in_links

TYPE = "tocsin-admin+jwt"
LONGEST_NAME = 255
_ISSUER = "tocsin"
_AUDIENCE = "tocsin-admin"
_CLAIMS = ("iss", "aud", "sub", "role", "iat", "exp", "jti")
_LONGEST_LIFE = timedelta(days=365)


class Admins:
    """Issues admin tokens and verifies them."""

    def __init__(self, vault: Vault, clock: Clock) -> None:
        self._keys = SigningKeys(Purpose.ADMIN, vault)
        self._clock = clock

    def issue(self, connection: Connection, *, name: str, expires_in: timedelta) -> str:
        """Return a token for the admin `name`; call this in a write transaction."""
        if not timedelta(seconds=1) <= expires_in <= _LONGEST_LIFE:
            raise OperatorError(
                f"the lifetime of an admin token must be from 1s to 365d; found {expires_in}"
            )
        check_name(name)
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
        key = self._keys.obtain_signing_key(connection, now)
        headers = {"typ": TYPE, "kid": key.id}
        return jwt.encode(claims, key.private_key, algorithm=key.algorithm, headers=headers)

    def verify(self, connection: Connection, token: str) -> str:
        """Return the name of the admin of a valid token; raises TokenError."""
        header = read_header(token)
        if not is_admin_token(header):
            raise TokenError
        now = self._clock.now()
        key = self._keys.load_public_key(connection, str(header.get("kid")), now)
        if key is None:
            raise TokenError
        claims = verify_claims(token, key, issuer=_ISSUER, audience=_AUDIENCE, required=_CLAIMS)
        if claims["role"] != "admin" or not isinstance(claims["exp"], int):
            raise TokenError
        if now.timestamp() >= claims["exp"]:
            raise TokenError(expired=True)
        return str(claims["sub"])

    def revoke_all(self, connection: Connection) -> None:
        """Revoke all admin tokens and links of any kind, and end all console sessions."""
        self._keys.revoke_all(connection)
        for links in (sign_in_links, passkey_links):
            connection.execute(delete(links))
        for kind in ("admin", "oidc", "person"):
            end_sessions_by_kind(connection, kind)


def check_name(name: str) -> None:
    """Raise OperatorError unless this can be the name of an admin."""
    if not 1 <= len(name) <= LONGEST_NAME:
        raise OperatorError(
            f"the name of an admin must have 1 to {LONGEST_NAME} characters; found {len(name)}"
        )


def is_admin_token(header: dict[str, object]) -> bool:
    """Return whether a header is that of an admin token (RFC 8725 section 3.11)."""
    return header.get("typ") == TYPE and header.get("alg") == ALGORITHMS[Purpose.ADMIN]
