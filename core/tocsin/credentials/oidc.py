"""Admins by an OpenID Connect issuer: a token of it that names the role makes its bearer one."""

from __future__ import annotations

from dataclasses import dataclass, field

import jwt

from tocsin.clock import Clock
from tocsin.credentials.oidc_keys import IssuerKeys
from tocsin.credentials.oidc_tokens import IssuerTokens, check_times, find_roles
from tocsin.credentials.tokens import TokenError, read_header

# Tokens for other ends say so (RFC 8725 section 3.11); many issuers name no type, or only JWT.
_TYPES = ("jwt", "at+jwt", "application/at+jwt")
# Of logout tokens (RFC 8417 section 2.2), and of ID tokens (OpenID Connect Core 1.0), which are for
# the application that somebody has signed in to, and not for what it calls.
_NOT_OF_ACCESS_TOKENS = frozenset({"events", "nonce", "at_hash", "c_hash"})


@dataclass(frozen=True, slots=True)
class OidcAdmin:
    """Whom a valid token of the issuer names, and whether the role is among their roles."""

    subject: str
    is_admin: bool
    expires_at: float = field(compare=False)
    """In seconds since the epoch."""


class OidcIssuer:
    """Verifies the tokens of one issuer (RFC 9068 section 4, RFC 8725)."""

    def __init__(
        self,
        issuer: str,
        *,
        audience: str,
        role_claim: str,
        role: str,
        keys: IssuerKeys,
        clock: Clock,
    ) -> None:
        self._issuer = issuer
        self._audience = audience
        self._role_claim = role_claim
        self._role = role
        self._clock = clock
        self._tokens = IssuerTokens(issuer, keys)

    def claims(self, token: str) -> bool:
        """Return whether `token` says that it is of this issuer; proves nothing and does no I/O."""
        if not read_header(token):
            return False
        try:
            claims = jwt.decode(token, options={"verify_signature": False})
        except (jwt.InvalidTokenError, RecursionError):
            return False
        return bool(claims.get("iss") == self._issuer)

    async def verify(self, token: str) -> OidcAdmin:
        """Return whom the token names; raises TokenError, and IssuerUnavailable without its keys.

        A token without the role is valid: its bearer is known, and no admin.
        """
        if not self.claims(token):
            raise TokenError
        claims = await self._tokens.verify(token, audience=self._audience, types=_TYPES)
        if not _NOT_OF_ACCESS_TOKENS.isdisjoint(claims):
            raise TokenError
        check_times(claims, self._clock.now())
        is_admin = self._role in find_roles(claims, self._role_claim)
        return OidcAdmin(claims["sub"], is_admin, claims["exp"])
