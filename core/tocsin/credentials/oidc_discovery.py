"""What an OpenID Connect issuer says of itself (OpenID Connect Discovery 1.0)."""

from __future__ import annotations

from datetime import timedelta
from http import HTTPStatus
from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from yarl import URL

from tocsin.errors import TocsinError
from tocsin.hookspecs import HttpClient, HttpResponse

TIMEOUT = timedelta(seconds=5)
LIMIT = 256 * 1024

Url = Annotated[str, StringConstraints(max_length=2048)]

Model = TypeVar("Model", bound=BaseModel)


class IssuerUnavailable(TocsinError):  # noqa: N818 - a state of the issuer, nobody's error here
    """The issuer's answers cannot be had, so no token of it can be judged."""


class Discovery(BaseModel):
    """OpenID Connect Discovery 1.0 section 3, as far as it is used here."""

    model_config = ConfigDict(extra="allow")

    issuer: Url
    jwks_uri: Url


class Endpoints(BaseModel):
    """OpenID Connect Discovery 1.0 section 3, of issuers that people sign in at."""

    authorization_endpoint: Url
    token_endpoint: Url
    token_endpoint_auth_methods_supported: list[str] = Field(default=["client_secret_basic"])
    authorization_response_iss_parameter_supported: bool = False
    """Whether each answer names the issuer (RFC 9207 section 3)."""


async def discover(issuer: str, http: HttpClient) -> Discovery:
    """Return what the issuer says of itself; raises IssuerUnavailable and PluginFailure."""
    well_known = f"{issuer.removesuffix('/')}/.well-known/openid-configuration"
    answer = await http.request("GET", well_known, timeout=TIMEOUT, limit=LIMIT)
    found = parse_issuer_response(answer, well_known, Discovery)
    # OpenID Connect Discovery 1.0 section 4.3
    if found.issuer != issuer:
        raise IssuerUnavailable(f"{well_known} names another issuer, {found.issuer!r}")
    require_tls(issuer, found.jwks_uri)
    return found


def read_endpoints(found: Discovery) -> Endpoints:
    """Return where people sign in; raises IssuerUnavailable where the issuer does not say it."""
    try:
        endpoints = Endpoints.model_validate(found.model_extra)
    except ValidationError:
        raise IssuerUnavailable(f"{found.issuer} does not say where people sign in") from None
    require_tls(found.issuer, endpoints.authorization_endpoint)
    require_tls(found.issuer, endpoints.token_endpoint)
    return endpoints


def require_tls(issuer: str, url: str) -> None:
    """Return unless what begins with TLS would go on without; raises IssuerUnavailable."""
    schemes = {"https"} if issuer.startswith("https://") else {"https", "http"}
    try:
        fits = URL(url).scheme in schemes and URL(url).host is not None
    except ValueError:
        fits = False
    if not fits:
        raise IssuerUnavailable(f"{issuer} names {url!r}, which is no address with {max(schemes)}")


def parse_issuer_response(answer: HttpResponse, url: str, model: type[Model]) -> Model:
    """Return what the issuer answered; raises IssuerUnavailable where it is something else."""
    if answer.status != HTTPStatus.OK:
        raise IssuerUnavailable(f"{url} answers with status {answer.status}")
    if answer.truncated:
        raise IssuerUnavailable(f"{url} answers with more than {LIMIT} bytes")
    try:
        return model.model_validate_json(answer.body)
    except ValidationError:
        raise IssuerUnavailable(f"{url} does not answer as {model.__doc__} says") from None
