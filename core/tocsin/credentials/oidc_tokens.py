"""Verification of tokens that an OpenID Connect issuer signed."""

from __future__ import annotations

import hmac
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import jwt

from tocsin.clock import Clock
from tocsin.credentials.oidc_discovery import ALGORITHMS, IssuerKey, IssuerKeys
from tocsin.credentials.tokens import TokenError, read_header
from tocsin.json_codec import values_at

_LONGEST_SUBJECT = 255  # OpenID Connect Core 1.0 section 2
_CLAIMS = ("iss", "aud", "sub", "exp")
_LEEWAY_SECONDS = 60
_YEAR_10000 = 253_402_300_800
_ID_TOKEN_TYPES = ("jwt",)  # access tokens (RFC 9068) are not ID tokens


class IssuerTokens:
    """Verifies the signatures of an issuer's tokens (RFC 8725)."""

    def __init__(self, issuer: str, keys: IssuerKeys) -> None:
        self._issuer = issuer
        self._keys = keys

    async def verify(
        self,
        token: str,
        *,
        audience: str,
        types: Collection[str],
        required: Collection[str] = _CLAIMS,
    ) -> Mapping[str, Any]:
        """Return the claims of a token of one of these types, without checking its times.

        Raises TokenError, and IssuerUnavailable without the issuer's keys.
        """
        header = read_header(token)
        if not _is_acceptable(header, types):
            raise TokenError
        key = await self._keys.find(header["alg"], header.get("kid"))
        if key is None:
            raise TokenError
        return self._decode(token, key, audience, required)

    def _decode(
        self, token: str, key: IssuerKey, audience: str, required: Collection[str]
    ) -> dict[str, Any]:
        try:
            claims = jwt.decode(
                token,
                key.public_key,
                algorithms=sorted(key.algorithms),
                audience=audience,
                issuer=self._issuer,
                # `check_times` checks the times with the injected clock.
                options={
                    "require": list(required),
                    "enforce_minimum_key_length": True,
                    "verify_exp": False,
                    "verify_iat": False,
                    "verify_nbf": False,
                },
            )
        except (jwt.PyJWTError, RecursionError):
            raise TokenError from None
        if "sub" in claims and not is_name(claims["sub"]):
            raise TokenError
        return claims


def check_times(claims: Mapping[str, Any], now: datetime) -> None:
    """Raise TokenError if the token is not valid at this time."""
    times = claims["exp"], claims.get("nbf", 0), claims.get("iat", 0)
    if not all(_is_time(time) for time in times):
        raise TokenError
    expires_at, *begins_at = times
    if max(begins_at) > now.timestamp() + _LEEWAY_SECONDS:
        raise TokenError
    if now.timestamp() >= expires_at:
        raise TokenError(expired=True)


def find_roles(claims: Mapping[str, Any], claim: str) -> frozenset[str]:
    """Return the roles in a claim; none if it is absent or has another format.

    `claim` is the name of the claim, which may be a URL, or a dotted path.
    """
    found = next(values_at(claims, claim, enter_lists=False), None)
    if isinstance(found, str):
        return frozenset((found, *found.split(" ")))
    roles = found if isinstance(found, list) else []
    return frozenset(role for role in roles if isinstance(role, str))


def _is_acceptable(header: Mapping[str, Any], types: Collection[str]) -> bool:
    """Return whether the algorithm and type are accepted; extensions are not supported."""
    return (
        header.get("alg") in ALGORITHMS
        and "crit" not in header
        and str(header.get("typ", "JWT")).lower() in types
    )


def is_name(value: object) -> bool:
    """Return whether a claim can be an identifier: printable text of at most 255 characters."""
    is_text = isinstance(value, str) and 0 < len(value) <= _LONGEST_SUBJECT
    return is_text and str(value).isprintable()


def _is_time(value: object) -> bool:
    """Return whether this is a NumericDate (RFC 7519 section 2); NaN is not."""
    return isinstance(value, int | float) and abs(value) < _YEAR_10000


class IdTokens:
    """Verifies ID tokens that an issuer has issued to one client."""

    def __init__(self, issuer: str, client_id: str, keys: IssuerKeys, clock: Clock) -> None:
        self._tokens = IssuerTokens(issuer, keys)
        self._client_id = client_id
        self._clock = clock

    async def verify(
        self, token: str, nonce: str, *, is_refreshed: bool = False
    ) -> Mapping[str, Any]:
        """Return the claims of a valid ID token (OpenID Connect Core 1.0 section 3.1.3.7).

        It repeats the nonce of the sign-in; a refreshed one need not (section 12.2). Raises
        TokenError, and IssuerUnavailable without the issuer's keys.
        """
        claims = await self._tokens.verify(token, audience=self._client_id, types=_ID_TOKEN_TYPES)
        check_times(claims, self._clock.now())
        if "iat" not in claims or not _is_for(claims, self._client_id):
            raise TokenError
        if not (is_refreshed and "nonce" not in claims) and not _has_nonce(claims, nonce):
            raise TokenError
        return claims


def _is_for(claims: Mapping[str, Any], client_id: str) -> bool:
    """Return whether the token was issued to this client."""
    is_ours_alone = claims["aud"] in (client_id, [client_id])
    return bool(claims.get("azp", client_id if is_ours_alone else None) == client_id)


def _has_nonce(claims: Mapping[str, Any], nonce: str) -> bool:
    presented = claims.get("nonce")
    is_text = isinstance(presented, str) and presented.isascii()
    return is_text and hmac.compare_digest(str(presented), nonce)


# Tokens for other purposes have a type of their own (RFC 8725 section 3.11); many issuers set no
# type, or only JWT.
_ACCESS_TOKEN_TYPES = ("jwt", "at+jwt", "application/at+jwt")
# Claims of logout tokens (RFC 8417 section 2.2) and of ID tokens (OpenID Connect Core 1.0), which
# are for the application that a user signs in to, not for the APIs that it calls.
_NOT_OF_ACCESS_TOKENS = frozenset({"events", "nonce", "at_hash", "c_hash"})


@dataclass(frozen=True, slots=True)
class OidcAdmin:
    """Subject of a valid token, and whether it has the admin role."""

    subject: str
    is_admin: bool
    expires_at: float = field(compare=False)
    """In seconds since the epoch."""


class OidcIssuer:
    """Verifies access tokens of one issuer (RFC 9068 section 4, RFC 8725)."""

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

    def is_issuer_of(self, token: str) -> bool:
        """Return whether `token` names this issuer; verifies nothing and does no I/O."""
        if not read_header(token):
            return False
        try:
            claims = jwt.decode(token, options={"verify_signature": False})
        except (jwt.InvalidTokenError, RecursionError):
            return False
        return bool(claims.get("iss") == self._issuer)

    async def verify(self, token: str) -> OidcAdmin:
        """Return the subject of the token; raises TokenError, and IssuerUnavailable without keys.

        A token without the admin role is valid, but its bearer is not an admin.
        """
        if not self.is_issuer_of(token):
            raise TokenError
        claims = await self._tokens.verify(
            token, audience=self._audience, types=_ACCESS_TOKEN_TYPES
        )
        if not _NOT_OF_ACCESS_TOKENS.isdisjoint(claims):
            raise TokenError
        check_times(claims, self._clock.now())
        is_admin = self._role in find_roles(claims, self._role_claim)
        return OidcAdmin(claims["sub"], is_admin, claims["exp"])
