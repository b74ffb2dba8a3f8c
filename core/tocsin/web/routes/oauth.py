"""The OAuth 2.0 endpoints: tokens by client credentials, introspection, revocation, metadata."""

from __future__ import annotations

import re
from typing import Any

from pydantic import ConfigDict, Field
from sqlalchemy import Connection

from tocsin.credentials import AccessToken, Scope, TokenError, revoke_token
from tocsin.web.context import RequestContext, Response
from tocsin.web.parsing import BodyModel, ResponseModel
from tocsin.web.problems import OAuthError

TOKEN_PATH = "/oauth/token"  # noqa: S105 - an address
INTROSPECTION_PATH = "/oauth/introspect"
REVOCATION_PATH = "/oauth/revoke"
JWKS_PATH = "/.well-known/jwks.json"
METADATA_PATH = "/.well-known/oauth-authorization-server"
GRANT = "client_credentials"

_NOT_STORED = {"Cache-Control": "no-store", "Pragma": "no-cache"}
# Longer than this nobody keeps the keys: the next one is published an hour before it signs
_PUBLIC = {"Cache-Control": "public, max-age=900"}
_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+(?: [\x21\x23-\x5b\x5d-\x7e]+)*")


class ClientForm(BodyModel):
    """The fields by which a client proves itself, unless it does so by HTTP Basic."""

    # RFC 6749 section 3.2: parameters that are not known are ignored
    model_config = ConfigDict(
        extra="ignore", json_schema_extra={"additionalProperties": {"type": "string"}}
    )

    client_id: str | None = None
    client_secret: str | None = None


class TokenRequest(ClientForm):
    """A request for an access token (RFC 6749 section 4.4.2)."""

    grant_type: str = Field(json_schema_extra={"const": GRANT})
    scope: str | None = Field(
        default=None,
        pattern=f"^({_SCOPE.pattern})?$",
        description="Scopes separated by spaces; by default all that the client has.",
    )


class PresentedToken(ClientForm):
    """A token to look at or to revoke."""

    token: str = Field(min_length=1)
    token_type_hint: str | None = Field(default=None, description="Ignored: there is one type.")


class TokenResponse(ResponseModel):
    """An access token (RFC 6749 section 5.1)."""

    access_token: str
    expires_in: int = Field(description="Seconds.")
    token_type: str = Field(json_schema_extra={"const": "Bearer"})
    scope: str = Field(description="The granted scopes, separated by single spaces.")


class Introspection(ResponseModel):
    """What a token is worth (RFC 7662); a token that is not valid has `active` alone."""

    active: bool
    scope: str | None = None
    client_id: str | None = None
    token_type: str | None = None
    exp: int | None = None
    iat: int | None = None
    sub: str | None = None
    aud: str | None = None
    iss: str | None = None
    jti: str | None = None


class RevokedToken(ResponseModel):
    """Nothing: the token is void, whatever it was."""


class PublicKeySet(ResponseModel):
    """The keys that verify access tokens (RFC 7517)."""

    keys: list[dict[str, Any]]


class AuthorizationServerMetadata(ResponseModel):
    """What a client has to know of the token endpoint (RFC 8414)."""

    issuer: str
    token_endpoint: str
    jwks_uri: str
    introspection_endpoint: str
    revocation_endpoint: str
    scopes_supported: list[Scope]
    response_types_supported: list[str] = Field(description="None: nobody is redirected here.")
    grant_types_supported: list[str]
    token_endpoint_auth_methods_supported: list[str]
    introspection_endpoint_auth_methods_supported: list[str]
    revocation_endpoint_auth_methods_supported: list[str]
    service_documentation: str


async def validate_token_request(call: RequestContext) -> None:
    """Return where the request has its shape; OAuthError before any credential is looked at."""
    form = call.body
    if "grant_type" not in form:
        raise OAuthError("invalid_request", "grant_type is missing.")
    if form["grant_type"] != GRANT:
        raise OAuthError("unsupported_grant_type", f"grant_type must be {GRANT}.")
    if "scope" in form and not _SCOPE.fullmatch(form["scope"]):
        raise OAuthError("invalid_scope", "scope takes scopes separated by single spaces.")


async def validate_token_form(call: RequestContext) -> None:
    """Return where the request names a token; OAuthError."""
    if "token" not in call.body:
        raise OAuthError("invalid_request", "token is missing.")


def issue_token(connection: Connection, call: RequestContext) -> Response:
    """Issue an access token."""
    scopes = _granted(call)
    tokens = call.services.access_tokens
    content = {
        "access_token": tokens.issue(connection, _client_id(call), scopes),
        "expires_in": int(tokens.lifetime.total_seconds()),
        "token_type": "Bearer",
        "scope": " ".join(scopes),
    }
    return Response(content, _NOT_STORED)


def introspect_token(connection: Connection, call: RequestContext) -> Response:
    """Say what one of the client's own tokens is worth."""
    token = _own(connection, call)
    described = {"active": False} if token is None else call.services.access_tokens.describe(token)
    return Response(described, _NOT_STORED)


def revoke_presented_token(connection: Connection, call: RequestContext) -> Response:
    """Make one of the client's own tokens void; a token that is not valid is void already."""
    token = _verified(connection, call)
    if token is not None and token.client_id != _client_id(call):
        raise OAuthError("invalid_grant", "The token was issued to another client.")
    if token is not None:
        revoke_token(connection, token)
    return Response({}, _NOT_STORED)


async def get_key_set(call: RequestContext) -> Response:
    """Answer the keys that verify access tokens."""
    keys = await call.services.database.read(call.services.access_tokens.published_keys)
    return Response({"keys": keys}, _PUBLIC)


async def get_authorization_server_metadata(call: RequestContext) -> Response:
    """Answer what a client has to know of the token endpoint."""
    issuer = call.services.issuer_url
    methods = ["client_secret_basic", "client_secret_post"]
    content = {
        "issuer": issuer,
        "token_endpoint": issuer + TOKEN_PATH,
        "jwks_uri": issuer + JWKS_PATH,
        "introspection_endpoint": issuer + INTROSPECTION_PATH,
        "revocation_endpoint": issuer + REVOCATION_PATH,
        "scopes_supported": sorted(Scope),
        "response_types_supported": [],
        "grant_types_supported": [GRANT],
        "token_endpoint_auth_methods_supported": methods,
        "introspection_endpoint_auth_methods_supported": methods,
        "revocation_endpoint_auth_methods_supported": methods,
        "service_documentation": f"{call.services.public_url}/docs",
    }
    return Response(content, _PUBLIC)


def _granted(call: RequestContext) -> tuple[str, ...]:
    """Return the scopes that are asked for, or all of the client's; OAuthError."""
    own = call.principal.scopes
    wanted = set(call.body["scope"].split(" ")) if "scope" in call.body else set(own)
    if not wanted <= set(own):
        excess = ", ".join(sorted(wanted.difference(own)))
        raise OAuthError("invalid_scope", f"The client does not have: {excess}.")
    return tuple(sorted(wanted))


def _client_id(call: RequestContext) -> str:
    return call.principal.id.removeprefix("client:")


def _verified(connection: Connection, call: RequestContext) -> AccessToken | None:
    try:
        return call.services.access_tokens.verify(connection, call.body["token"])
    except TokenError:
        return None


def _own(connection: Connection, call: RequestContext) -> AccessToken | None:
    token = _verified(connection, call)
    return token if token is not None and token.client_id == _client_id(call) else None
