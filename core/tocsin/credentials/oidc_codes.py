"""Exchanging the code that a browser brings from the issuer for an ID token."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import quote_plus, urlencode

import orjson
from pydantic import BaseModel

from tocsin.credentials.oidc_discovery import (
    LIMIT,
    TIMEOUT,
    Endpoints,
    IssuerUnavailable,
    parse_issuer_response,
)
from tocsin.errors import PluginFailure, TocsinError
from tocsin.hookspecs import HttpClient, HttpResponse

_OURS = frozenset({"invalid_client", "unauthorized_client", "unsupported_grant_type"})


class CodeRefused(TocsinError):  # noqa: N818 - a verdict of the issuer
    """The issuer takes the code from nobody, or not from this browser's attempt."""


@dataclass(frozen=True, slots=True)
class OidcClient:
    """What Tocsin is to the issuer."""

    id: str
    secret: str | None = field(repr=False)
    """None for a public client."""
    redirect_uri: str


class _TokenResponse(BaseModel):
    """OpenID Connect Core 1.0 section 3.1.3.3, as far as it is used here."""

    id_token: str


class _ErrorResponse(BaseModel):
    """RFC 6749 section 5.2."""

    error: str


async def exchange_code(
    client: OidcClient, code: str, verifier: str, *, endpoints: Endpoints, http: HttpClient
) -> str:
    """Return the ID token for a code (RFC 6749 section 4.1.3).

    Raises CodeRefused, and IssuerUnavailable where nobody's code is taken.
    """
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": client.redirect_uri,
        "code_verifier": verifier,
    }
    headers, named = _authenticate(client, endpoints)
    headers |= {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
    url, content = endpoints.token_endpoint, urlencode(form | named).encode()
    try:
        answer = await http.request(
            "POST", url, headers=headers, content=content, timeout=TIMEOUT, limit=LIMIT
        )
    except PluginFailure as error:
        raise IssuerUnavailable(str(error)) from None
    _require_no_error(answer, url)
    return parse_issuer_response(answer, url, _TokenResponse).id_token


def _authenticate(
    client: OidcClient, endpoints: Endpoints
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the headers and the fields by which Tocsin shows who it is (RFC 6749 section 2.3)."""
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
    if error in _OURS or answer.status == HTTPStatus.UNAUTHORIZED:
        words = "mend TOCSIN_OIDC_CLIENT_ID and TOCSIN_OIDC_CLIENT_SECRET"
        raise IssuerUnavailable(f"{url} does not take this client ({error}); {words}")
    raise CodeRefused(f"{url} does not take the code ({error})")


def read_error(answer: HttpResponse) -> str:
    """Return the code of the error that was answered, or that there is none."""
    try:
        error = _ErrorResponse.model_validate(orjson.loads(answer.body)).error
    except ValueError:
        return f"status {answer.status}"
    return error[:100] if error.isprintable() else "an unreadable error"
