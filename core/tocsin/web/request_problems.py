"""Problems that any request can have: credentials, limits, bodies, idempotency keys."""

from __future__ import annotations

from tocsin.web.problems import BODY_TIMEOUT, OAuthProblem, ProblemKind, ProblemType
from tocsin.web.schemas.examples import (
    KEY_ID,
)

# Credentials
TWO_CREDENTIALS = ProblemType(
    "two-credentials", 400, "Send exactly one credential, in either X-API-Key or Authorization."
)
UNAUTHORIZED = ProblemType(
    "invalid-credential", 401, "{error}", example={"error": "The API key is not valid."}
)
UNAUTHORIZED_ADMIN = ProblemType(
    "invalid-token",
    401,
    "{error}",
    example={"error": "The bearer token is not valid."},
    path="/api/admin/api-keys",
)
MISSING_SCOPE = ProblemType(
    "missing-scope",
    403,
    "API key does not have the required scope: {required_scope}",
    kind=ProblemKind.MISSING_SCOPE,
    example={"required_scope": "incidents:read"},
    members=("required_scope",),
)
ADMIN_REQUIRED = ProblemType(
    "admin-required", 403, "This endpoint requires the admin role.", path="/api/admin/api-keys"
)
INVALID_SCOPE = ProblemType(
    "invalid-scope",
    400,
    "Unknown scope {scopes}; valid scopes are {valid}.",
    kind=ProblemKind.INVALID_SCOPE,
    example={
        "scopes": "'incidents:delete'",
        "valid": "graph:read, incidents:read, incidents:write, investigations:read, "
        "investigations:write, search:read",
    },
    path="/api/admin/api-keys",
)
ISSUER_UNAVAILABLE = ProblemType(
    "issuer-unavailable",
    503,
    "The OpenID Connect issuer's keys are unavailable; try again later.",
    path="/api/admin/api-keys",
)

# Rate limits
TOO_MANY_REQUESTS = ProblemType(
    "too-many-requests",
    429,
    "Too many requests; try again in {seconds} s.",
    kind=ProblemKind.TOO_MANY_REQUESTS,
    example={"seconds": 5},
)
TOO_MANY_FAILURES = ProblemType(
    "too-many-failures",
    429,
    "Too many failed authentications from this address; try again in {seconds} s.",
    kind=ProblemKind.TOO_MANY_REQUESTS,
    example={"seconds": 5},
)
TOO_MANY_VERIFICATIONS = ProblemType(
    "too-many-verifications",
    429,
    "The node is verifying too many credentials; try again later.",
    kind=ProblemKind.TOO_MANY_REQUESTS,
)

# Requests
INVALID_JSON = ProblemType(
    "invalid-json",
    400,
    "The body is not valid JSON: {reason}.",
    example={"reason": "EOF while parsing an object"},
)
NOT_ACCEPTABLE = ProblemType(
    "not-acceptable",
    406,
    "This endpoint returns only {media_type}.",
    example={"media_type": "application/json"},
)
BODY_TOO_SLOW = ProblemType(
    "body-too-slow", 408, f"The body did not arrive within {BODY_TIMEOUT} seconds."
)
LENGTH_REQUIRED = ProblemType(
    "length-required", 411, "Send a body with a Content-Length header or with chunked encoding."
)
UNSUPPORTED_MEDIA_TYPE = ProblemType(
    "unsupported-media-type",
    415,
    "Send the body as {media_type}.",
    example={"media_type": "application/json"},
)
UNSUPPORTED_ENCODING = ProblemType(
    "unsupported-encoding",
    415,
    "Tocsin does not support this Content-Encoding. Use gzip or deflate, or send the body without "
    "compression.",
)
INVALID_REQUEST = ProblemType(
    "invalid-request",
    422,
    "{count} in the {where}.",
    kind=ProblemKind.INVALID_REQUEST,
    example={
        "count": "1 error",
        "where": "query parameters",
        "errors": [{"path": "verbose", "detail": "unknown key; remove it"}],
    },
    members=("errors",),
)

# Idempotency keys
INVALID_IDEMPOTENCY_KEY = ProblemType(
    "invalid-idempotency-key",
    400,
    "Idempotency-Key must contain one key of 1 to 255 printable ASCII characters.",
    path="/api/admin/api-keys",
)
IDEMPOTENCY_KEY_REUSED = ProblemType(
    "idempotency-key-reused",
    422,
    "This Idempotency-Key was used for a different request; use a new key.",
    kind=ProblemKind.IDEMPOTENCY_KEY_REUSED,
    path="/api/admin/api-keys",
)
IDEMPOTENCY_KEY_IN_FLIGHT = ProblemType(
    "idempotency-key-in-flight",
    409,
    "The first request with this Idempotency-Key is still in progress; try again later.",
    kind=ProblemKind.IDEMPOTENCY_KEY_IN_FLIGHT,
    path="/api/admin/api-keys",
)
SECRET_SHOWN = ProblemType(
    "secret-shown",
    409,
    "This request has already created or changed {record}. The response "
    "contained a secret, which the API returns only once. If you do not have the secret, "
    "create a new one.",
    kind=ProblemKind.SECRET_SHOWN,
    example={"record": f"key:{KEY_ID}"},
    path="/api/admin/api-keys",
    members=("record",),
)

# OAuth 2.0
INVALID_FORM = OAuthProblem(
    "invalid_request",
    "{reason}",
    example={"reason": "The request contains a parameter more than once."},
)
UNSUPPORTED_GRANT = OAuthProblem("unsupported_grant_type", "grant_type must be client_credentials.")
MALFORMED_SCOPE = OAuthProblem(
    "invalid_scope", "scope must contain scopes separated by single spaces."
)
SCOPE_NOT_GRANTED = OAuthProblem(
    "invalid_scope",
    "The client does not have these scopes: {scopes}.",
    example={"scopes": "graph:read"},
)
FOREIGN_TOKEN = OAuthProblem("invalid_grant", "The token was issued to a different client.")
INVALID_CLIENT = OAuthProblem(
    "invalid_client",
    "{error}",
    status=401,
    example={"error": "The client ID or secret is not valid."},
)
