"""What every token of an OpenID Connect issuer has in common: its signature, claims and times."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

import jwt

from tocsin.credentials.oidc_keys import ALGORITHMS, IssuerKey, IssuerKeys
from tocsin.credentials.tokens import TokenError, read_header

_LONGEST_SUBJECT = 255  # OpenID Connect Core 1.0 section 2
_CLAIMS = ("iss", "aud", "sub", "exp")
_LEEWAY_SECONDS = 60
_YEAR_10000 = 253_402_300_800


class IssuerTokens:
    """Tells which tokens an issuer has signed (RFC 8725)."""

    def __init__(self, issuer: str, keys: IssuerKeys) -> None:
        self._issuer = issuer
        self._keys = keys

    async def verify(
        self, token: str, *, audience: str, types: Collection[str]
    ) -> Mapping[str, Any]:
        """Return the claims of a token of one of these types, whose times are still to be judged.

        Raises TokenError, and IssuerUnavailable without the issuer's keys.
        """
        header = read_header(token)
        if not _is_acceptable(header, types):
            raise TokenError
        key = await self._keys.find(header["alg"], header.get("kid"))
        if key is None:
            raise TokenError
        return self._decode(token, key, audience)

    def _decode(self, token: str, key: IssuerKey, audience: str) -> dict[str, Any]:
        try:
            claims = jwt.decode(
                token,
                key.public_key,
                algorithms=sorted(key.algorithms),
                audience=audience,
                issuer=self._issuer,
                # The times are judged by the injected clock.
                options={
                    "require": list(_CLAIMS),
                    "enforce_minimum_key_length": True,
                    "verify_exp": False,
                    "verify_iat": False,
                    "verify_nbf": False,
                },
            )
        except (jwt.PyJWTError, RecursionError):
            raise TokenError from None
        if not _is_name(claims["sub"]):
            raise TokenError
        return claims


def check_times(claims: Mapping[str, Any], now: datetime) -> None:
    """Return where the token is valid at this moment; raises TokenError."""
    times = claims["exp"], claims.get("nbf", 0), claims.get("iat", 0)
    if not all(_is_time(time) for time in times):
        raise TokenError
    expires_at, *begins_at = times
    if max(begins_at) > now.timestamp() + _LEEWAY_SECONDS:
        raise TokenError
    if now.timestamp() >= expires_at:
        raise TokenError(expired=True)


def find_roles(claims: Mapping[str, Any], claim: str) -> frozenset[str]:
    """Return the roles that a claim lists or names; none where it is absent or of another form.

    `claim` is the claim's name, which may be a URL, or else a path of members joined by dots.
    """
    found = claims[claim] if claim in claims else _descend(claims, claim)
    if isinstance(found, str):
        return frozenset((found, *found.split(" ")))
    roles = found if isinstance(found, list) else []
    return frozenset(role for role in roles if isinstance(role, str))


def _descend(claims: Mapping[str, Any], path: str) -> Any:
    found: Any = claims
    for member in path.split("."):
        found = found.get(member) if isinstance(found, Mapping) else None
    return found


def _is_acceptable(header: Mapping[str, Any], types: Collection[str]) -> bool:
    """Return whether a token with this header may be of use; no extension is understood."""
    return (
        header.get("alg") in ALGORITHMS
        and "crit" not in header
        and str(header.get("typ", "JWT")).lower() in types
    )


def _is_name(subject: str) -> bool:
    return 0 < len(subject) <= _LONGEST_SUBJECT and subject.isprintable()


def _is_time(value: object) -> bool:
    """Return whether this is a NumericDate (RFC 7519 section 2), which JSON's NaN is not."""
    return isinstance(value, int | float) and abs(value) < _YEAR_10000
