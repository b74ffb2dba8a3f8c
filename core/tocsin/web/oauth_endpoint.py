"""Endpoints of OAuth 2.0: client authentication (RFC 6749 section 2.3.1) and error format."""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import replace
from typing import NoReturn
from urllib.parse import parse_qsl, unquote_plus

from aiohttp import hdrs, web
from sqlalchemy import Connection

from tocsin.credentials import AuthenticationError, ClientSecret, parse_client
from tocsin.web.authentication import API_KEY_HEADER, PRESENTED
from tocsin.web.dispatch import NOBODY, MutationEndpoint, keep_principal
from tocsin.web.parsing import read_body
from tocsin.web.problems import OAuthError, describe_error, to_oauth_error
from tocsin.web.request_problems import INVALID_CLIENT, INVALID_FORM

FORM_MEDIA_TYPE = "application/x-www-form-urlencoded"
_MAX_FORM_FIELDS = 20

Form = Mapping[str, str]


class OAuthEndpoint(MutationEndpoint):
    """Endpoint for OAuth 2.0 clients: checks the form first, then the client's credentials."""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Return the handler's response; every error is raised as OAuthError."""
        try:
            return await self._authenticate(request)
        except OAuthError:
            raise
        except Exception as error:  # noqa: BLE001 - every error is reported in one form
            raise to_oauth_error(describe_error(request, error)) from None

    async def _authenticate(self, request: web.Request) -> web.Response:
        try:
            return await self._serve(request)
        except AuthenticationError as error:
            services = self._services
            address = services.addresses.find(request)
            await services.rate_limits.count_failure(address, request.get(PRESENTED))
            headers = {"WWW-Authenticate": 'Basic realm="tocsin"'}
            raise INVALID_CLIENT.error(headers, error=error) from None

    async def _serve(self, request: web.Request) -> web.Response:
        form = await read_form(request)
        call = replace(self._build_context(request, NOBODY), body=form)
        if self._endpoint.prepare is not None:
            await self._endpoint.prepare(call)
        credential = read_client_credentials(request, call.body)
        request[PRESENTED] = f"{credential.identifier}:{credential.secret}"
        principal = await self._access_control.authenticate(request, credential, keep_principal)
        call = replace(call, principal=principal)
        database = self._services.database
        run = database.lookup if self._endpoint.is_brief else database.write
        return self._render(request, await run(self._mutation.apply, call, None))

    def _confirm(self, connection: Connection, request: web.Request) -> None:
        self._access_control.reidentify(connection, request)


async def read_form(request: web.Request) -> Form:
    """Return the fields of the form; raises OAuthError (`invalid_request`).

    According to RFC 6749 section 3.2, an empty parameter counts as omitted, and a repeated
    parameter is an error.
    """
    if request.content_type != FORM_MEDIA_TYPE:
        _raise_invalid_request(f"Send the parameters as {FORM_MEDIA_TYPE}.")
    if request.query_string:
        _raise_invalid_request("Send the parameters in the body, not in the URL.")
    try:
        text = (await read_body(request)).decode()
        pairs = parse_qsl(
            text, keep_blank_values=True, errors="strict", max_num_fields=_MAX_FORM_FIELDS
        )
    except web.RequestPayloadError:
        _raise_invalid_request(
            "The body does not have the length or encoding that the headers state."
        )
    except ValueError:
        _raise_invalid_request("The body is not a UTF-8 form.")
    names = [name for name, _ in pairs]
    if len(names) != len(set(names)):
        _raise_invalid_request("The request contains a parameter more than once.")
    return {name: value for name, value in pairs if value}


def read_client_credentials(request: web.Request, form: Form) -> ClientSecret:
    """Return the credentials of the client, from the header or the form.

    Raises OAuthError (`invalid_request`) if both hold credentials, and AuthenticationError if they
    are missing or malformed.
    """
    headers = request.headers.getall(hdrs.AUTHORIZATION, [])
    if API_KEY_HEADER in request.headers and (headers or "client_secret" in form):
        _raise_invalid_request("Send client credentials without an API key.")
    if not headers:
        return _parse_secret(form.get("client_id", ""), form.get("client_secret", ""))
    if len(headers) > 1 or "client_secret" in form:
        _raise_invalid_request("Send one set of client credentials, in the header or in the body.")
    client_id, secret = _decode_basic(headers[0])
    if form.get("client_id", client_id) != client_id:
        _raise_invalid_request("The header and the body contain different client IDs.")
    return _parse_secret(client_id, secret)


def _decode_basic(authorization: str) -> tuple[str, str]:
    """Return the ID and the secret, which are form-encoded (RFC 6749 section 2.3.1)."""
    scheme, _, encoded = authorization.partition(" ")
    if scheme.casefold() != "basic":
        raise AuthenticationError("Use the Basic scheme in Authorization.")
    try:
        text = b64decode(encoded.strip(), validate=True).decode()
    except (binascii.Error, ValueError):
        raise AuthenticationError("The Authorization header is malformed.") from None
    client_id, _, secret = text.partition(":")
    return unquote_plus(client_id), unquote_plus(secret)


def _parse_secret(client_id: str, secret: str) -> ClientSecret:
    if not client_id or not secret:
        raise AuthenticationError("Send client_id and client_secret, in the header or in the body.")
    presented = parse_client(client_id, secret)
    if presented is None:
        raise AuthenticationError("The client ID or secret is not valid.")
    return presented


def _raise_invalid_request(description: str) -> NoReturn:
    raise INVALID_FORM.error(reason=description)
