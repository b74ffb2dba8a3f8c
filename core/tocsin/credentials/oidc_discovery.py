"""Discovery document and public keys of an OpenID Connect issuer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Annotated, Any, Literal, TypeVar

import jwt
import structlog
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from yarl import URL

from tocsin.clock import Clock
from tocsin.errors import PluginFailure, TocsinError
from tocsin.hookspecs import HttpClient, HttpResponse

TIMEOUT = timedelta(seconds=5)
LIMIT = 256 * 1024

Url = Annotated[str, StringConstraints(max_length=2048)]

Model = TypeVar("Model", bound=BaseModel)


class IssuerUnavailable(TocsinError):  # noqa: N818 - a state of the issuer
    """The issuer cannot be reached or its responses are invalid."""


class Discovery(BaseModel):
    """OpenID Connect Discovery 1.0 section 3, as far as it is used here."""

    model_config = ConfigDict(extra="allow")

    issuer: Url
    jwks_uri: Url


class Endpoints(BaseModel):
    """Sign-in metadata of OpenID Connect Discovery 1.0 section 3."""

    authorization_endpoint: Url
    token_endpoint: Url
    token_endpoint_auth_methods_supported: list[str] = Field(default=["client_secret_basic"])
    authorization_response_iss_parameter_supported: bool = False
    """Whether each response names the issuer (RFC 9207 section 3)."""


async def discover(issuer: str, http: HttpClient) -> Discovery:
    """Return the discovery document of the issuer; raises IssuerUnavailable and PluginFailure."""
    well_known = f"{issuer.removesuffix('/')}/.well-known/openid-configuration"
    answer = await http.request("GET", well_known, timeout=TIMEOUT, limit=LIMIT)
    found = parse_issuer_response(answer, well_known, Discovery)
    # OpenID Connect Discovery 1.0 section 4.3
    if found.issuer != issuer:
        raise IssuerUnavailable(f"{well_known} is for another issuer: {found.issuer!r}")
    require_tls(issuer, found.jwks_uri)
    return found


def read_endpoints(found: Discovery) -> Endpoints:
    """Return the sign-in endpoints; raises IssuerUnavailable if they are missing."""
    try:
        endpoints = Endpoints.model_validate(found.model_extra)
    except ValidationError:
        raise IssuerUnavailable(
            f"{found.issuer} does not list sign-in endpoints in its discovery document"
        ) from None
    require_tls(found.issuer, endpoints.authorization_endpoint)
    require_tls(found.issuer, endpoints.token_endpoint)
    return endpoints


def require_tls(issuer: str, url: str) -> None:
    """Require TLS for a URL of an issuer with TLS; raises IssuerUnavailable."""
    schemes = {"https"} if issuer.startswith("https://") else {"https", "http"}
    try:
        fits = URL(url).scheme in schemes and URL(url).host is not None
    except ValueError:
        fits = False
    if not fits:
        raise IssuerUnavailable(f"{issuer} lists {url!r}, which is not a valid {max(schemes)} URL")


def parse_issuer_response(answer: HttpResponse, url: str, model: type[Model]) -> Model:
    """Return the parsed response; raises IssuerUnavailable if it is invalid."""
    if answer.status != HTTPStatus.OK:
        raise IssuerUnavailable(f"{url} returned status {answer.status}")
    if answer.truncated:
        raise IssuerUnavailable(f"{url} returned more than {LIMIT} bytes")
    try:
        return model.model_validate_json(answer.body)
    except ValidationError:
        raise IssuerUnavailable(
            f"{url} returned a response that does not follow {model.__doc__}"
        ) from None


_FRESH = timedelta(minutes=10)
_USABLE = timedelta(hours=24)
_COOL_DOWN = timedelta(minutes=1)  # while known keys serve
_PAUSE = timedelta(seconds=10)  # for unknown keys
_LONG_AGO = datetime.min.replace(tzinfo=UTC)

# By `kty` and `crv`: RFC 7518 section 3.1 and RFC 8037 section 3.1, without what is symmetric.
_ALGORITHMS = {
    ("RSA", None): frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}),
    ("EC", "P-256"): frozenset({"ES256"}),
    ("EC", "P-384"): frozenset({"ES384"}),
    ("EC", "P-521"): frozenset({"ES512"}),
    ("OKP", "Ed25519"): frozenset({"EdDSA"}),
}
ALGORITHMS = tuple(sorted(frozenset[str]().union(*_ALGORITHMS.values())))
"""All algorithms that are accepted for signatures of an issuer."""

_NO_KEYS = "the issuer's keys are unavailable"
_OUTDATED_KEYS = "the key is unknown, and the issuer's keys could not be refreshed"

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class IssuerKey:
    """A public key and the signature algorithms that it is valid for."""

    key_id: str | None
    algorithms: frozenset[str]
    public_key: Any


class _JsonWebKeySet(BaseModel):
    """RFC 7517 section 5."""

    keys: list[Any]


class _JsonWebKey(BaseModel):
    """RFC 7517 section 4, for keys that verify signatures."""

    kty: str
    crv: str | None = None
    kid: str | None = None
    alg: str | None = None
    use: Literal["sig"] | None = None
    d: None = None  # a published private key would let anyone sign


class IssuerKeys:
    """Keys of one issuer, fetched on demand and cached."""

    def __init__(self, issuer: str, http: HttpClient, clock: Clock) -> None:
        self._issuer = issuer
        self._http = http
        self._clock = clock
        self._keys: tuple[IssuerKey, ...] = ()
        self._discovery: Discovery | None = None
        self._usable_until = self._refresh_at = self._look_again_at = _LONG_AGO
        self._is_outdated = False
        """Whether the last fetch failed."""
        self._running_fetch: asyncio.Task[None] | None = None

    async def find(self, algorithm: str, key_id: str | None) -> IssuerKey | None:
        """Return the issuer's key for a signature, None if no single key matches.

        Raises IssuerUnavailable if the keys are unavailable, or if the key may be newer than the
        cached ones, because the last fetch failed.
        """
        now = self._clock.now()
        if now >= self._refresh_at:
            await self._refresh()
        elif self._pick(algorithm, key_id) is None and (
            self._running_fetch or now >= self._look_again_at
        ):
            self._look_again_at = now + _PAUSE
            await self._refresh()
        found = self._pick(algorithm, key_id)
        if found is None and self._is_outdated:
            raise IssuerUnavailable(_OUTDATED_KEYS)
        return found

    async def discovery(self) -> Discovery:
        """Return the cached discovery document; raises IssuerUnavailable."""
        if self._clock.now() >= self._refresh_at:
            await self._refresh()
        if self._discovery is None or self._clock.now() >= self._usable_until:
            raise IssuerUnavailable(_NO_KEYS)
        return self._discovery

    def _pick(self, algorithm: str, key_id: str | None) -> IssuerKey | None:
        if self._clock.now() >= self._usable_until:
            raise IssuerUnavailable(_NO_KEYS)
        fitting = [
            key
            for key in self._keys
            if algorithm in key.algorithms and key_id in (None, key.key_id)
        ]
        if key_id is None and len(fitting) > 1:
            return None
        return next(iter(fitting), None)

    async def _refresh(self) -> None:
        """Fetch the keys; concurrent callers share one fetch."""
        if self._running_fetch is None:
            self._running_fetch = asyncio.create_task(self._fetch())
            self._running_fetch.add_done_callback(self._clear_fetch)
        # The cancellation of one caller must not affect the others.
        await asyncio.shield(self._running_fetch)

    def _clear_fetch(self, _: asyncio.Task[None]) -> None:
        self._running_fetch = None

    async def _fetch(self) -> None:
        """Replace the keys; if that fails, keep the cached ones until they are too old."""
        try:
            discovery, keys = await fetch_keys(self._issuer, self._http)
        except (IssuerUnavailable, PluginFailure) as error:
            held = self._clock.now() < self._usable_until
            self._refresh_at = self._clock.now() + (_COOL_DOWN if held else _PAUSE)
            self._is_outdated = True
            _log.warning(
                "openid connect keys not refreshed",
                issuer=self._issuer,
                reason=str(error),
                effect="using cached keys" if held else "rejecting all of the issuer's tokens",
            )
        else:
            now = self._clock.now()
            self._discovery, self._keys, self._is_outdated = discovery, keys, False
            self._refresh_at, self._usable_until = now + _FRESH, now + _USABLE


async def fetch_keys(issuer: str, http: HttpClient) -> tuple[Discovery, tuple[IssuerKey, ...]]:
    """Return the discovery document and the signature keys of an issuer.

    Raises IssuerUnavailable and PluginFailure.
    """
    discovery = await discover(issuer, http)
    url = discovery.jwks_uri
    answer = await http.request("GET", url, timeout=TIMEOUT, limit=LIMIT)
    return discovery, tuple(read_keys(parse_issuer_response(answer, url, _JsonWebKeySet).keys))


def read_keys(entries: Iterable[Any]) -> Iterator[IssuerKey]:
    """Yield the signature keys of a set and ignore other keys (RFC 7517 section 5)."""
    for entry in entries:
        try:
            key = _JsonWebKey.model_validate(entry)
            fitting = _ALGORITHMS.get((key.kty, key.crv), frozenset[str]())
            algorithms = fitting & {key.alg} if key.alg else fitting
            if algorithms:
                yield IssuerKey(key.kid, algorithms, jwt.PyJWK(entry, min(algorithms)).key)
        except (ValidationError, jwt.PyJWTError):
            continue
