"""How an API client proves itself at the OAuth 2.0 endpoints (RFC 6749 section 2.3.1)."""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Mapping
from typing import NoReturn
from urllib.parse import parse_qsl, unquote_plus

from aiohttp import hdrs, web

from tocsin.credentials import AuthenticationError, ClientSecret, parse_client
from tocsin.web.parsing import read_body
from tocsin.web.problems import OAuthError

FORM_MEDIA_TYPE = "application/x-www-form-urlencoded"
_MAX_FORM_FIELDS = 20

Form = Mapping[str, str]


async def read_form(request: web.Request) -> Form:
    """Return the form's fields, without those that are empty; OAuthError (`invalid_request`).

    RFC 6749 section 3.2: an empty parameter counts as left out, one given twice is an error.
    """
    if request.content_type != FORM_MEDIA_TYPE:
        _raise_invalid_request(f"Send the parameters as {FORM_MEDIA_TYPE}.")
    if request.query_string:
        _raise_invalid_request("Send the parameters in the body, and none in the URL.")
    try:
        text = (await read_body(request)).decode()
        pairs = parse_qsl(
            text, keep_blank_values=True, errors="strict", max_num_fields=_MAX_FORM_FIELDS
        )
    except web.RequestPayloadError:
        _raise_invalid_request("The body does not arrive as its headers say.")
    except ValueError:
        _raise_invalid_request("The body is not a form in UTF-8.")
    names = [name for name, _ in pairs]
    if len(names) != len(set(names)):
        _raise_invalid_request("A parameter is given more than once.")
    return {name: value for name, value in pairs if value}


def read_client_credentials(request: web.Request, form: Form) -> ClientSecret:
    """Return what the client presents, in the header or in the form, but not in both.

    Raises OAuthError (`invalid_request`) where there are two, and AuthenticationError where it is
    missing or malformed.
    """
    headers = request.headers.getall(hdrs.AUTHORIZATION, [])
    if "X-API-Key" in request.headers and (headers or "client_secret" in form):
        _raise_invalid_request("Send client credentials, and no API key.")
    if not headers:
        return _parse_secret(form.get("client_id", ""), form.get("client_secret", ""))
    if len(headers) > 1 or "client_secret" in form:
        _raise_invalid_request("Send one set of client credentials, in the header or in the body.")
    client_id, secret = _decode_basic(headers[0])
    if form.get("client_id", client_id) != client_id:
        _raise_invalid_request("The header and the body name different clients.")
    return _parse_secret(client_id, secret)


def _decode_basic(authorization: str) -> tuple[str, str]:
    """Return both parts, each decoded as a form's value, which is how they are to be sent."""
    scheme, _, encoded = authorization.partition(" ")
    if scheme.casefold() != "basic":
        raise AuthenticationError("Authorization takes the scheme Basic here.")
    try:
        text = b64decode(encoded.strip(), validate=True).decode()
    except (binascii.Error, ValueError):
        raise AuthenticationError("The header Authorization is malformed.") from None
    client_id, _, secret = text.partition(":")
    return unquote_plus(client_id), unquote_plus(secret)


def _parse_secret(client_id: str, secret: str) -> ClientSecret:
    if not client_id or not secret:
        raise AuthenticationError("Send client_id and client_secret, in the header or in the body.")
    presented = parse_client(client_id, secret)
    if presented is None:
        raise AuthenticationError("The client id or secret is not valid.")
    return presented


def _raise_invalid_request(description: str) -> NoReturn:
    raise OAuthError("invalid_request", description)
