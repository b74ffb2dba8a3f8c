"""Console sign-in with OpenID Connect: the authorization code flow with PKCE.

OpenID Connect Core 1.0 section 3.1, RFC 7636, RFC 9207 and RFC 9700.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from yarl import URL

from tocsin.clock import Clock
from tocsin.credentials.authentication import AuthenticationError
from tocsin.credentials.console_sessions import LONGEST_SESSION, ConsoleRole, ConsoleSession
from tocsin.credentials.oidc_code_flow import (
    SIGN_IN_KEY_PURPOSE,
    GrantRefused,
    OidcClient,
    RefreshGrant,
    SealedGrants,
    SignInAttempts,
    exchange_code,
    refresh_tokens,
)
from tocsin.credentials.oidc_discovery import (
    Endpoints,
    IssuerKeys,
    IssuerUnavailable,
    discover,
    fetch_keys,
    read_endpoints,
)
from tocsin.credentials.oidc_logout import LogoutTokens
from tocsin.credentials.oidc_tokens import (
    IdTokens,
    OidcIssuer,
    find_roles,
    is_name,
)
from tocsin.credentials.tokens import TokenError
from tocsin.credentials.vault import Vault
from tocsin.errors import AccessDeniedError, PluginFailure
from tocsin.hookspecs import HttpClient
from tocsin.logs import SampledLog
from tocsin.net import open_client
from tocsin.settings import Settings
from tocsin.store.tables import GRANT_PURPOSE

_SCOPE = "openid profile email"
_NAMES = ("preferred_username", "name", "email")
_LONGEST_NAME = 255
_MAX_ERROR_TEXT = 300
_log = SampledLog()


@dataclass(frozen=True, slots=True)
class OidcRoles:
    """Mapping of the issuer's roles to console roles."""

    claim: str
    names: Mapping[ConsoleRole, str]
    """The issuer's name of each role, the most powerful first; empty for roles not in use."""

    def map_role(self, claims: Mapping[str, Any]) -> ConsoleRole:
        """Return the console role for the claims; raises AccessDeniedError if there is none."""
        roles = find_roles(claims, self.claim)
        used = {role: name for role, name in self.names.items() if name}
        for role, name in used.items():
            if name in roles:
                return role
        wanted = " nor ".join(f"{name} ({role})" for role, name in used.items())
        lacks = "contains neither" if len(used) > 1 else "does not contain"
        raise AccessDeniedError(
            f"The issuer signed you in as {read_display_name(claims)}, but you do not have a "
            f"role in Tocsin. The claim {self.claim} {lacks} {wanted}.",
        )


@dataclass(frozen=True, slots=True)
class SignInResult:
    """Result of a successful sign-in at the issuer."""

    session: ConsoleSession
    place: str
    """The page to return to."""
    is_silent: bool
    """Whether it was a check of a session."""


class NoLongerSignedIn(AuthenticationError):  # noqa: N818 - a decision of the issuer
    """The issuer did not confirm a session."""


class OidcSignIn:
    """Redirects users to the issuer and verifies its responses."""

    def __init__(
        self,
        issuer: str,
        *,
        client: OidcClient,
        roles: OidcRoles,
        attempts: SignInAttempts,
        grants: SealedGrants,
        check_interval: timedelta,
        keys: IssuerKeys,
        http: HttpClient,
        clock: Clock,
    ) -> None:
        self.logout_tokens = LogoutTokens(issuer, client.id, keys, clock)
        self._issuer = issuer
        self._client = client
        self._roles = roles
        self._attempts = attempts
        self._grants = grants
        self._check_interval = check_interval
        self._keys = keys
        self._id_tokens = IdTokens(issuer, client.id, keys, clock)
        self._http = http
        self._clock = clock

    def replace_secret(self, secret: str | None) -> None:
        """Use another client secret from now on."""
        self._client = replace(self._client, secret=secret)

    async def begin(self, place: str, *, is_silent: bool = False) -> tuple[str, str]:
        """Return the URL to redirect to and the encrypted attempt for the browser.

        With `is_silent`, the issuer shows nothing to the user, and is asked first whether it is
        there: a browser that finds nobody could not come back. Raises IssuerUnavailable.
        """
        if is_silent:
            try:
                await discover(self._issuer, self._http)
            except PluginFailure as error:
                raise IssuerUnavailable(str(error)) from None
        endpoints = read_endpoints(await self._keys.discovery())
        attempt, sealed = self._attempts.begin(place, is_silent=is_silent)
        query = {
            "response_type": "code",
            "client_id": self._client.id,
            "redirect_uri": self._client.redirect_uri,
            "scope": _SCOPE,
            "state": attempt.state,
            "nonce": attempt.nonce,
            "code_challenge": attempt.challenge,
            "code_challenge_method": "S256",
            **({"prompt": "none"} if is_silent else {}),
        }
        return str(URL(endpoints.authorization_endpoint).update_query(query)), sealed

    async def finish(self, sealed: str, answer: Mapping[str, str]) -> SignInResult:
        """Return the session and the page for a response of the issuer.

        Raises AuthenticationError with a text for the user, NoLongerSignedIn if the check of a
        session failed, AccessDeniedError if the user has no role, and IssuerUnavailable. Nothing is
        fetched unless this browser has started to sign in.
        """
        attempt = self._attempts.take(sealed, answer.get("state", ""))
        if attempt is None:
            raise AuthenticationError(_STRANGE)
        endpoints = read_endpoints(await self._keys.discovery())
        self._require_issuer(answer, endpoints)
        code = _code_in(answer, is_silent=attempt.is_silent)
        try:
            tokens = await exchange_code(
                self._client, code, attempt.verifier, endpoints=endpoints, http=self._http
            )
            if tokens.id_token is None:
                raise IssuerUnavailable(f"{endpoints.token_endpoint} returned no ID token")
            claims = await self._id_tokens.verify(tokens.id_token, attempt.nonce)
        except (GrantRefused, TokenError) as error:
            _log.warning("sign-in rejected", issuer=self._issuer, reason=str(error))
            reason = _CODE_REFUSED if isinstance(error, GrantRefused) else _TOKEN_REFUSED
            raise AuthenticationError(reason) from None
        token = tokens.refresh_token
        grant = None if token is None else self._grants.seal(RefreshGrant(token, attempt.nonce))
        session = self._build_session(claims, grant, self._clock.now() + LONGEST_SESSION)
        return SignInResult(session, attempt.place, attempt.is_silent)

    async def check(self, session: ConsoleSession) -> ConsoleSession:
        """Return a session as the issuer describes it now, by its refresh token.

        A session whose refresh token gives no ID token loses it, and is due at once: the browser
        asks the issuer then. Raises NoLongerSignedIn if the issuer refuses, AccessDeniedError if
        the user has no role, and IssuerUnavailable.
        """
        grant = self._grants.open(session.sealed_grant or "")
        without = replace(session, sealed_grant=None, check_at=self._clock.now())
        if grant is None:
            return without
        endpoints = read_endpoints(await self._keys.discovery())
        try:
            tokens = await refresh_tokens(
                self._client, grant.refresh_token, endpoints=endpoints, http=self._http
            )
            if tokens.id_token is None:
                return without
            claims = await self._id_tokens.verify(tokens.id_token, grant.nonce, is_refreshed=True)
        except (GrantRefused, TokenError) as error:
            _log.warning("console session not renewed", issuer=self._issuer, reason=str(error))
            raise NoLongerSignedIn(_SESSION_ENDED) from None
        if f"oidc:{claims['sub']}" != session.principal:
            raise NoLongerSignedIn(_SESSION_ENDED)
        kept = replace(grant, refresh_token=tokens.refresh_token or grant.refresh_token)
        return self._build_session(claims, self._grants.seal(kept), session.expires_at)

    def _require_issuer(self, answer: Mapping[str, str], endpoints: Endpoints) -> None:
        """Raise AuthenticationError if another issuer responded (RFC 9207 section 2.4)."""
        always = endpoints.authorization_response_iss_parameter_supported
        if answer.get("iss", None if always else self._issuer) != self._issuer:
            raise AuthenticationError(_OTHER_ISSUER)

    def _build_session(
        self, claims: Mapping[str, Any], grant: str | None, until: datetime
    ) -> ConsoleSession:
        now = self._clock.now()
        sid = claims.get("sid")
        return ConsoleSession(
            principal=f"oidc:{claims['sub']}",
            name=read_display_name(claims),
            role=self._roles.map_role(claims),
            expires_at=until,
            sid=sid if is_name(sid) else None,
            sealed_grant=grant,
            check_at=now + self._check_interval,
            valid_until=now + 2 * self._check_interval,
        )


def read_display_name(claims: Mapping[str, Any]) -> str:
    """Return the display name in the claims, or the subject."""
    for claim in _NAMES:
        name = claims.get(claim)
        if isinstance(name, str) and name.strip() and name.isprintable():
            return name.strip()[:_LONGEST_NAME]
    return str(claims["sub"])


def _code_in(answer: Mapping[str, str], *, is_silent: bool) -> str:
    """Return the code; raises AuthenticationError with the issuer's error if there is none."""
    if "code" in answer and "error" not in answer:
        return answer["code"]
    if is_silent:  # such as `login_required` (OpenID Connect Core 1.0 section 3.1.2.6)
        raise NoLongerSignedIn(_SESSION_ENDED)
    error = _plain(answer.get("error", "no code"))
    why = _plain(answer.get("error_description", ""))
    raise AuthenticationError(f"The issuer rejected the sign-in: {error}{why and f' ({why})'}.")


def _plain(text: str) -> str:
    return "".join(letter for letter in text if letter.isprintable())[:_MAX_ERROR_TEXT]


_STRANGE = (
    "This sign-in was not started in this browser, has expired (10 minutes), or was already "
    "completed. Sign in again."
)
_SESSION_ENDED = "The issuer no longer confirms your session. Sign in again."
_OTHER_ISSUER = "The response is from another issuer. Sign in again."
_CODE_REFUSED = "The issuer rejected the authorization code. Sign in again."
_TOKEN_REFUSED = (
    "The issuer returned an ID token that is not valid for this sign-in. Sign in again."  # noqa: S105 - a sentence
)


CALLBACK = "/sign-in/callback"
"""Redirect path for the issuer, below the base URL."""
BACK_CHANNEL_LOGOUT = "/sign-in/back-channel-logout"
"""Path at which the issuer reports ended sessions, below the base URL."""


@dataclass(frozen=True, slots=True)
class Oidc:
    """Uses of the configured issuer."""

    issuer: OidcIssuer | None = None
    """Verifier of admins' access tokens."""
    sign_in: OidcSignIn | None = None
    """Sign-in to the console."""


def open_oidc(settings: Settings, vault: Vault, clock: Clock, stack: AsyncExitStack) -> Oidc:
    """Return the uses of the configured issuer; the stack closes its client."""
    if not settings.oidc_issuer:
        return Oidc()
    # The operator configured the issuer, so a private address is allowed.
    http = open_client(allow_hosts=[URL(settings.oidc_issuer).host or ""])
    stack.push_async_callback(http.close)
    keys = IssuerKeys(settings.oidc_issuer, http, clock)
    return Oidc(
        issuer=_build_issuer(settings, keys, clock) if settings.oidc_audience else None,
        sign_in=_build_sign_in(settings, vault, keys, http, clock)
        if settings.oidc_client_id
        else None,
    )


def _build_issuer(settings: Settings, keys: IssuerKeys, clock: Clock) -> OidcIssuer:
    return OidcIssuer(
        settings.oidc_issuer,
        audience=settings.oidc_audience,
        role_claim=settings.oidc_role_claim,
        role=settings.oidc_role,
        keys=keys,
        clock=clock,
    )


def _list_role_names(settings: Settings) -> Mapping[ConsoleRole, str]:
    return {
        ConsoleRole.ADMIN: settings.oidc_role,
        ConsoleRole.OPERATOR: settings.oidc_operator_role,
        ConsoleRole.ANALYST: settings.oidc_analyst_role,
        ConsoleRole.AUDITOR: settings.oidc_auditor_role,
        ConsoleRole.VIEWER: settings.oidc_viewer_role,
    }


def _build_sign_in(
    settings: Settings, vault: Vault, keys: IssuerKeys, http: HttpClient, clock: Clock
) -> OidcSignIn:
    secret = settings.oidc_client_secret
    client = OidcClient(
        id=settings.oidc_client_id,
        secret=None if secret is None else secret.get_secret_value(),
        redirect_uri=settings.public_url + CALLBACK,
    )
    return OidcSignIn(
        settings.oidc_issuer,
        client=client,
        roles=OidcRoles(settings.oidc_role_claim, _list_role_names(settings)),
        attempts=SignInAttempts(partial(vault.open_cipher, SIGN_IN_KEY_PURPOSE), clock),
        grants=SealedGrants(partial(vault.open_cipher, GRANT_PURPOSE)),
        check_interval=timedelta(seconds=settings.oidc_recheck_seconds),
        keys=keys,
        http=http,
        clock=clock,
    )


async def describe_issuer(settings: Settings) -> str:
    """Return what the configured issuer offers, after fetching its discovery document and keys.

    Raises IssuerUnavailable, with the reason, if administrators could not be authenticated.
    """
    http = open_client(allow_hosts=[URL(settings.oidc_issuer).host or ""])
    try:
        discovery, keys = await fetch_keys(settings.oidc_issuer, http)
    except PluginFailure as error:
        raise IssuerUnavailable(str(error)) from None
    finally:
        await http.close()
    if not keys:
        raise IssuerUnavailable(
            f"{discovery.jwks_uri} does not list a key for verifying signatures"
        )
    found = f"{settings.oidc_issuer}: {len(keys)} {'key' if len(keys) == 1 else 'keys'}"
    if not settings.oidc_client_id:
        return found
    read_endpoints(discovery)
    ends = bool((discovery.model_extra or {}).get("backchannel_logout_supported"))
    logout = "reports ended sessions" if ends else "does not report ended sessions"
    return f"{found}, sign-in endpoints; {logout}"
