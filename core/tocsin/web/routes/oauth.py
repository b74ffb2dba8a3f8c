"""The OAuth 2.0 endpoints: tokens by client credentials, introspection, revocation, metadata."""

from __future__ import annotations

from sqlalchemy import Connection

from tocsin import credentials
from tocsin.credentials import AccessToken, Scope, TokenError
from tocsin.web.context import AccessRole, Endpoint, RequestContext, Response
from tocsin.web.problems import DATABASE_UNAVAILABLE
from tocsin.web.request_problems import (
    FOREIGN_TOKEN,
    INVALID_FORM,
    MALFORMED_SCOPE,
    SCOPE_NOT_GRANTED,
    UNSUPPORTED_GRANT,
)
from tocsin.web.schemas.oauth import (
    GRANT,
    SCOPE_SYNTAX,
    AuthorizationServerMetadata,
    Introspection,
    PresentedToken,
    PublicKeySet,
    RevokedToken,
    TokenRequest,
    TokenResponse,
)

TOKEN_PATH = "/oauth/token"  # noqa: S105 - an address

INTROSPECTION_PATH = "/oauth/introspect"

REVOCATION_PATH = "/oauth/revoke"

JWKS_PATH = "/.well-known/jwks.json"

METADATA_PATH = "/.well-known/oauth-authorization-server"

_NOT_STORED = {"Cache-Control": "no-store", "Pragma": "no-cache"}

# Longer than this nobody keeps the keys: the next one is published an hour before it signs
_PUBLIC = {"Cache-Control": "public, max-age=900"}


async def validate_token_request(call: RequestContext) -> None:
    """Validate the form before the credentials are checked; raises OAuthError."""
    form = call.body
    if "grant_type" not in form:
        raise INVALID_FORM.error(reason="grant_type is missing.")
    if form["grant_type"] != GRANT:
        raise UNSUPPORTED_GRANT.error()
    if "scope" in form and not SCOPE_SYNTAX.fullmatch(form["scope"]):
        raise MALFORMED_SCOPE.error()


async def validate_token_form(call: RequestContext) -> None:
    """Require a token in the form; raises OAuthError."""
    if "token" not in call.body:
        raise INVALID_FORM.error(reason="token is missing.")


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
    """Return the state of one of the client's tokens."""
    token = _find_own_token(connection, call)
    described = {"active": False} if token is None else call.services.access_tokens.describe(token)
    return Response(described, _NOT_STORED)


def revoke_token(connection: Connection, call: RequestContext) -> Response:
    """Revoke one of the client's tokens. An invalid token does not cause an error."""
    token = _verify_token(connection, call)
    if token is not None and token.client_id != _client_id(call):
        raise FOREIGN_TOKEN.error()
    if token is not None:
        credentials.revoke_token(connection, token)
    return Response({}, _NOT_STORED)


async def get_key_set(call: RequestContext) -> Response:
    """Return the keys that verify access tokens."""
    keys = await call.services.database.read(call.services.access_tokens.load_published_keys)
    return Response({"keys": keys}, _PUBLIC)


async def get_authorization_server_metadata(call: RequestContext) -> Response:
    """Return the metadata of the token endpoint."""
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
    """Return the requested scopes, by default all scopes of the client; raises OAuthError."""
    own = call.principal.scopes
    wanted = set(call.body["scope"].split(" ")) if "scope" in call.body else set(own)
    if not wanted <= set(own):
        excess = ", ".join(sorted(wanted.difference(own)))
        raise SCOPE_NOT_GRANTED.error(scopes=excess)
    return tuple(sorted(wanted))


def _client_id(call: RequestContext) -> str:
    return call.principal.id.removeprefix("client:")


def _verify_token(connection: Connection, call: RequestContext) -> AccessToken | None:
    try:
        return call.services.access_tokens.verify(connection, call.body["token"])
    except TokenError:
        return None


def _find_own_token(connection: Connection, call: RequestContext) -> AccessToken | None:
    token = _verify_token(connection, call)
    return token if token is not None and token.client_id == _client_id(call) else None


ENDPOINTS = (
    Endpoint(
        method="POST",
        path=TOKEN_PATH,
        access=AccessRole.CLIENT,
        is_form=True,
        summary="Obtain an access token",
        handler=issue_token,
        problems=(UNSUPPORTED_GRANT, SCOPE_NOT_GRANTED),
        prepare=validate_token_request,
        body=TokenRequest,
        response=TokenResponse,
    ),
    Endpoint(
        method="POST",
        path=INTROSPECTION_PATH,
        access=AccessRole.CLIENT,
        is_form=True,
        summary="Introspect one of the client's tokens",
        handler=introspect_token,
        is_brief=True,
        prepare=validate_token_form,
        body=PresentedToken,
        response=Introspection,
    ),
    Endpoint(
        method="POST",
        path=REVOCATION_PATH,
        access=AccessRole.CLIENT,
        is_form=True,
        summary="Revoke one of the client's tokens",
        handler=revoke_token,
        problems=(FOREIGN_TOKEN,),
        prepare=validate_token_form,
        body=PresentedToken,
        response=RevokedToken,
    ),
    Endpoint(
        method="GET",
        path=JWKS_PATH,
        access=AccessRole.PUBLIC,
        summary="Publish the keys that verify access tokens",
        handler=get_key_set,
        response=PublicKeySet,
        problems=(DATABASE_UNAVAILABLE,),
    ),
    Endpoint(
        method="GET",
        path=METADATA_PATH,
        access=AccessRole.PUBLIC,
        summary="Describe the token endpoint (RFC 8414)",
        handler=get_authorization_server_metadata,
        response=AuthorizationServerMetadata,
    ),
)
