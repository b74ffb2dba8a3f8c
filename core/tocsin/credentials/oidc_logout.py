"""Logout tokens of an issuer (OpenID Connect Back-Channel Logout 1.0)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from tocsin.clock import Clock
from tocsin.credentials.oidc_discovery import IssuerKeys
from tocsin.credentials.oidc_tokens import IssuerTokens, check_times, is_name
from tocsin.credentials.tokens import TokenError

_EVENT = "http://schemas.openid.net/event/backchannel-logout"
_TYPES = ("logout+jwt", "application/logout+jwt", "jwt")  # section 2.4: the type is recommended
_CLAIMS = ("iss", "aud", "iat", "exp", "jti", "events")
_CLOCK_DIFFERENCE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class EndedSession:
    """What the issuer ended: one session, or all of a subject; one of both is named at least."""

    subject: str | None
    sid: str | None
    before: datetime
    """Sessions that began later are not meant, so a repeated token ends nothing more."""


class LogoutTokens:
    """Verifies logout tokens."""

    def __init__(self, issuer: str, client_id: str, keys: IssuerKeys, clock: Clock) -> None:
        self._tokens = IssuerTokens(issuer, keys)
        self._client_id = client_id
        self._clock = clock

    async def verify(self, token: str) -> EndedSession:
        """Return what a token ends, by the rules of section 2.6.

        Raises TokenError, and IssuerUnavailable without the issuer's keys.
        """
        claims = await self._tokens.verify(
            token, audience=self._client_id, types=_TYPES, required=_CLAIMS
        )
        check_times(claims, self._clock.now())
        named = {name: claims[name] for name in ("sub", "sid") if name in claims}
        events = claims["events"]
        is_logout = isinstance(events, dict) and isinstance(events.get(_EVENT), dict)
        if not is_logout or "nonce" in claims or not named or not is_name(claims["jti"]):
            raise TokenError
        if claims["iat"] < 0 or not all(map(is_name, named.values())):
            raise TokenError
        issued_at = datetime.fromtimestamp(claims["iat"], UTC)
        return EndedSession(named.get("sub"), named.get("sid"), issued_at + _CLOCK_DIFFERENCE)
