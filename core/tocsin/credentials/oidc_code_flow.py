"""Sign-in attempts and the exchange of authorization codes (PKCE)."""

from __future__ import annotations

import hmac
import secrets
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from hashlib import sha256
from http import HTTPStatus
from urllib.parse import quote_plus, urlencode

import orjson
from cryptography.fernet import InvalidToken, MultiFernet
from pydantic import BaseModel, Field

from tocsin.clock import Clock
from tocsin.credentials.digest_cache import DigestCache
from tocsin.credentials.oidc_discovery import (
    LIMIT,
    TIMEOUT,
    Endpoints,
    IssuerUnavailable,
    parse_issuer_response,
)
from tocsin.errors import PluginFailure, TocsinError
from tocsin.hookspecs import HttpClient, HttpResponse

SIGN_IN_KEY_PURPOSE = "console sign-in"
"""Purpose of the derived key."""
LIFETIME = timedelta(minutes=10)
"""Time that a user has to sign in at the issuer."""
LONGEST_PLACE = 1_500
_LONGEST = 4_096  # maximum size of a cookie (RFC 6265 section 6.1)


@dataclass(frozen=True, slots=True)
class SignInAttempt:
    """A sign-in that was started in a browser."""

    state: str
    """Protects the response against forgery (RFC 6749 section 10.12)."""
    nonce: str
    """Nonce of the ID token (OpenID Connect Core 1.0 section 3.1.2.1)."""
    verifier: str
    """Code verifier of PKCE (RFC 7636)."""
    place: str
    """The page to return to."""
    is_silent: bool = False
    """Whether the issuer is asked without anything being shown, to check a session."""

    @property
    def challenge(self) -> str:
        """Code challenge of PKCE (RFC 7636 section 4.2, S256)."""
        digest = sha256(self.verifier.encode()).digest()
        return urlsafe_b64encode(digest).rstrip(b"=").decode()


class SignInAttempts:
    """Encrypts attempts for browser cookies, so that the server stores nothing."""

    def __init__(self, open_cipher: Callable[[], MultiFernet], clock: Clock) -> None:
        """Create the attempts of a cluster, whose nodes share the keys of the cipher."""
        self._open_cipher = open_cipher
        self._clock = clock
        self._used = DigestCache[bool](clock, lifetime=LIFETIME)

    def begin(self, place: str, *, is_silent: bool = False) -> tuple[SignInAttempt, str]:
        """Return a new attempt and its encrypted form for the browser."""
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        wanted = place if len(place) <= LONGEST_PLACE else "/"
        attempt = SignInAttempt(state, nonce, verifier, wanted, is_silent)
        sealed = self._open_cipher().encrypt_at_time(orjson.dumps(asdict(attempt)), self._now())
        return attempt, sealed.decode()

    def take(self, sealed: str, state: str) -> SignInAttempt | None:
        """Return the attempt for a response with `state`, once.

        Returns None if this browser started no attempt or one with another state, if the attempt is
        too old, or if this node has already accepted a response to it. Other nodes do not know
        that; there, the issuer rejects a code that was used (RFC 6749 section 4.1.2).
        """
        attempt = self._open(sealed)
        if attempt is None or not hmac.compare_digest(attempt.state.encode(), _bytes(state)):
            return None
        digest = self._used.digest("state", attempt.state)
        if self._used.recall(digest):
            return None
        self._used.add(digest, fact=True)
        return attempt

    def _open(self, sealed: str) -> SignInAttempt | None:
        if len(sealed) > _LONGEST:
            return None
        try:
            seconds = int(LIFETIME.total_seconds())
            found = self._open_cipher().decrypt_at_time(_bytes(sealed), seconds, self._now())
        except InvalidToken:
            return None
        return SignInAttempt(**orjson.loads(found))

    def _now(self) -> int:
        return int(self._clock.now().timestamp())


@dataclass(frozen=True, slots=True)
class RefreshGrant:
    """What the issuer gave to ask it again about a user."""

    refresh_token: str = field(repr=False)
    nonce: str
    """Of the first ID token, which later ones repeat if they have any."""


class SealedGrants:
    """Encrypts grants for the database."""

    def __init__(self, open_cipher: Callable[[], MultiFernet]) -> None:
        """Create the grants of a cluster, whose nodes share the keys of the cipher."""
        self._open_cipher = open_cipher

    def seal(self, grant: RefreshGrant) -> str:
        """Return the encrypted form."""
        return self._open_cipher().encrypt(orjson.dumps(asdict(grant))).decode()

    def open(self, sealed: str) -> RefreshGrant | None:
        """Return the grant, None if another key encrypted it."""
        try:
            return RefreshGrant(**orjson.loads(self._open_cipher().decrypt(sealed)))
        except InvalidToken:
            return None


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


_CLIENT_ERRORS = frozenset({"invalid_client", "unauthorized_client", "unsupported_grant_type"})


class GrantRefused(TocsinError):  # noqa: N818 - a decision of the issuer
    """The issuer rejected an authorization code or a refresh token."""


@dataclass(frozen=True, slots=True)
class OidcClient:
    """Client registration of Tocsin at the issuer."""

    id: str
    secret: str | None = field(repr=False)
    """None for a public client."""
    redirect_uri: str


class IssuerTokenResponse(BaseModel):
    """OpenID Connect Core 1.0 sections 3.1.3.3 and 12.2, as far as it is used here."""

    id_token: str | None = Field(default=None, repr=False)
    refresh_token: str | None = Field(default=None, repr=False)


class _ErrorResponse(BaseModel):
    """RFC 6749 section 5.2."""

    error: str


async def exchange_code(
    client: OidcClient, code: str, verifier: str, *, endpoints: Endpoints, http: HttpClient
) -> IssuerTokenResponse:
    """Return the tokens for a code (RFC 6749 section 4.1.3).

    Raises GrantRefused, and IssuerUnavailable if the issuer cannot process any code.
    """
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": client.redirect_uri,
        "code_verifier": verifier,
    }
    return await _ask_for_tokens(client, form, endpoints, http)


async def refresh_tokens(
    client: OidcClient, refresh_token: str, *, endpoints: Endpoints, http: HttpClient
) -> IssuerTokenResponse:
    """Return new tokens (OpenID Connect Core 1.0 section 12).

    Raises GrantRefused, and IssuerUnavailable if the issuer cannot process any token.
    """
    form = {"grant_type": "refresh_token", "refresh_token": refresh_token}
    return await _ask_for_tokens(client, form, endpoints, http)


async def _ask_for_tokens(
    client: OidcClient, form: Mapping[str, str], endpoints: Endpoints, http: HttpClient
) -> IssuerTokenResponse:
    headers, named = _authenticate(client, endpoints)
    headers |= {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
    url, content = endpoints.token_endpoint, urlencode({**form, **named}).encode()
    try:
        answer = await http.request(
            "POST", url, headers=headers, content=content, timeout=TIMEOUT, limit=LIMIT
        )
    except PluginFailure as error:
        raise IssuerUnavailable(str(error)) from None
    _require_no_error(answer, url)
    return parse_issuer_response(answer, url, IssuerTokenResponse)


def _authenticate(
    client: OidcClient, endpoints: Endpoints
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the headers and form fields of client authentication (RFC 6749 section 2.3)."""
    if client.secret is None:
        return {}, {"client_id": client.id}
    methods = endpoints.token_endpoint_auth_methods_supported
    if "client_secret_basic" not in methods and "client_secret_post" in methods:
        return {}, {"client_id": client.id, "client_secret": client.secret}
    pair = f"{quote_plus(client.id)}:{quote_plus(client.secret)}"
    return {"Authorization": f"Basic {b64encode(pair.encode()).decode()}"}, {}


def _require_no_error(answer: HttpResponse, url: str) -> None:
    if answer.status not in {HTTPStatus.BAD_REQUEST, HTTPStatus.UNAUTHORIZED}:
        return
    error = read_error(answer)
    if error in _CLIENT_ERRORS or answer.status == HTTPStatus.UNAUTHORIZED:
        advice = "check TOCSIN_OIDC_CLIENT_ID and TOCSIN_OIDC_CLIENT_SECRET"
        raise IssuerUnavailable(f"{url} rejected the client ({error}); {advice}")
    raise GrantRefused(f"{url} rejected the code or refresh token ({error})")


def read_error(answer: HttpResponse) -> str:
    """Return the error code of a response, or its status if it has none."""
    try:
        error = _ErrorResponse.model_validate(orjson.loads(answer.body)).error
    except ValueError:
        return f"status {answer.status}"
    return error[:100] if error.isprintable() else "an unreadable error"
