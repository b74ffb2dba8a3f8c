"""Schemas of OAuth 2.0."""

from __future__ import annotations

import re
from typing import Any, ClassVar

from pydantic import ConfigDict, Field

from tocsin.credentials import Scope
from tocsin.model import Json
from tocsin.web.parsing import BodyModel, ResponseModel
from tocsin.web.schemas.examples import CLIENT_ID, CLIENT_SECRET, TOKEN, ULID, URL

GRANT = "client_credentials"

SCOPE_SYNTAX = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+(?: [\x21\x23-\x5b\x5d-\x7e]+)*")


class ClientForm(BodyModel):
    """Client credentials in the form, as an alternative to HTTP Basic."""

    # RFC 6749 section 3.2: parameters that are not known are ignored
    model_config = ConfigDict(
        extra="ignore", json_schema_extra={"additionalProperties": {"type": "string"}}
    )

    client_id: str | None = None
    client_secret: str | None = None


class TokenRequest(ClientForm):
    """A request for an access token (RFC 6749 section 4.4.2)."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "client_id": CLIENT_ID,
        "client_secret": CLIENT_SECRET,
        "grant_type": "client_credentials",
        "scope": "incidents:read",
    }

    grant_type: str = Field(json_schema_extra={"const": GRANT})
    scope: str | None = Field(
        default=None,
        pattern=f"^({SCOPE_SYNTAX.pattern})?$",
        description="Requested scopes, separated by single spaces; by default, all scopes of the "
        "client.",
    )


class PresentedToken(ClientForm):
    """A token to introspect or to revoke."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "client_id": CLIENT_ID,
        "client_secret": CLIENT_SECRET,
        "token": TOKEN,
    }

    token: str = Field(min_length=1)
    token_type_hint: str | None = Field(
        default=None, description="Ignored, because there is only one token type."
    )


class TokenResponse(ResponseModel):
    """An access token (RFC 6749 section 5.1)."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "access_token": TOKEN,
        "expires_in": 1800,
        "token_type": "Bearer",
        "scope": "incidents:read",
    }

    access_token: str
    expires_in: int = Field(description="How many seconds the token is valid.")
    token_type: str = Field(json_schema_extra={"const": "Bearer"})
    scope: str = Field(description="Granted scopes, separated by single spaces.")


class Introspection(ResponseModel):
    """State of a token (RFC 7662). For an invalid token, the response contains only `active`."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "active": True,
        "scope": "incidents:read",
        "client_id": CLIENT_ID,
        "token_type": "Bearer",
        "exp": 1_795_240_981,
        "iat": 1_795_239_181,
        "sub": CLIENT_ID,
        "aud": URL,
        "iss": URL,
        "jti": ULID,
    }

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
    """Empty response: the token is no longer valid."""


class PublicKeySet(ResponseModel):
    """Keys that verify access tokens (RFC 7517)."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "keys": [
            {
                "kty": "EC",
                "crv": "P-256",
                "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
                "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
                "kid": ULID,
                "use": "sig",
                "alg": "ES256",
            }
        ]
    }

    keys: list[dict[str, Any]]


class AuthorizationServerMetadata(ResponseModel):
    """Metadata of the token endpoint (RFC 8414)."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "issuer": URL,
        "token_endpoint": f"{URL}/oauth/token",
        "jwks_uri": f"{URL}/.well-known/jwks.json",
        "introspection_endpoint": f"{URL}/oauth/introspect",
        "revocation_endpoint": f"{URL}/oauth/revoke",
        "scopes_supported": ["incidents:read", "search:read"],
        "grant_types_supported": ["client_credentials"],
        "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
        "introspection_endpoint_auth_methods_supported": [
            "client_secret_basic",
            "client_secret_post",
        ],
        "revocation_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
        "service_documentation": f"{URL}/docs",
    }

    issuer: str
    token_endpoint: str
    jwks_uri: str
    introspection_endpoint: str
    revocation_endpoint: str
    scopes_supported: list[Scope]
    response_types_supported: list[str] = Field(
        description="Empty: there is no authorization endpoint."
    )
    grant_types_supported: list[str]
    token_endpoint_auth_methods_supported: list[str]
    introspection_endpoint_auth_methods_supported: list[str]
    revocation_endpoint_auth_methods_supported: list[str]
    service_documentation: str
