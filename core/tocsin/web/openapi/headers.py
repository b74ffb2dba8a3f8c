"""Header fields of requests and responses."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from tocsin.web.context import REPLICA_LAG, REQUEST_ID, AccessRole, Endpoint
from tocsin.web.idempotency import IDEMPOTENCY_KEY, IDEMPOTENCY_REPLAYED

_TEXT = {"type": "string"}
_TAG = '"9c0e9a8f4b1d4f0c8a5b7e6d3c2f1a00"'

PARAMETERS: dict[str, Any] = {
    "IdempotencyKey": {
        "name": IDEMPOTENCY_KEY,
        "in": "header",
        "description": "Key that makes it safe to retry the request: for 24 hours, requests with "
        "the same key, path and body take effect only once.",
        "schema": {
            **_TEXT,
            "pattern": '^("[ !#-\\[\\]-~]{1,255}"|[!#-+\\--~]{1,255})$',
        },
        "example": "8e03978e-40d5-43e8-bc93-6894a57f9324",
    },
    "IfMatch": {
        "name": "If-Match",
        "in": "header",
        "description": "`ETag` of the incident when you read it. If the incident has changed "
        "since then, the response is 412.",
        "schema": _TEXT,
        "example": _TAG,
    },
    "IfNoneMatch": {
        "name": "If-None-Match",
        "in": "header",
        "description": "`ETag` of an earlier response. The status is 304 if nothing has changed.",
        "schema": _TEXT,
        "example": _TAG,
    },
    "RequestId": {
        "name": REQUEST_ID,
        "in": "header",
        "description": "ID of the request: 1 to 128 letters, digits, `.`, `_` and `-`. Tocsin "
        "replaces other IDs.",
        "schema": _TEXT,
        "example": "playbook-17.step-4",
    },
}


def _header(description: str, example: object, **schema: object) -> dict[str, Any]:
    return {"description": description, "schema": schema or _TEXT, "example": example}


HEADERS: dict[str, Any] = {
    REQUEST_ID: _header("Request ID, which also appears in the log.", "playbook-17.step-4")
    | {"required": True},
    "ETag": _header("Entity tag, for `If-None-Match` and `If-Match`.", _TAG),
    "Link": _header(
        "Link to the next page, if any (RFC 8288).",
        '<https://tocsin.example.com/api/v1/incidents?cursor=ZDQyLjU2>; rel="next"',
    ),
    "RateLimit-Policy": _header("The credential's limits.", '"credential";q=600;w=60'),
    "RateLimit": _header(
        "`r`: remaining requests; `t`: seconds until the full limit is available again.",
        '"credential";r=599;t=1',
    ),
    REPLICA_LAG: _header(
        "How many seconds the response of a read replica can lag behind the primary. "
        "Absent if the primary answered.",
        "0.8",
        pattern="^[0-9]+\\.[0-9]$",
        type="string",
    ),
    "Retry-After": _header(
        "How many seconds to wait before you retry.", 5, type="integer", minimum=1
    ),
    "WWW-Authenticate": _header("Authentication challenge.", 'Bearer realm="tocsin"')
    | {"required": True},
    IDEMPOTENCY_REPLAYED: _header(
        "Present if this is the response to an earlier request with the same key.",
        "true",
        const="true",
    ),
}

_UNCOUNTED = {HTTPStatus.UNAUTHORIZED, HTTPStatus.INTERNAL_SERVER_ERROR}


def request_headers(endpoint: Endpoint) -> list[dict[str, str]]:
    """Return the header parameters of an endpoint, except for credentials."""
    names = ["RequestId"]
    if endpoint.idempotent:
        names.append("IdempotencyKey")
    if endpoint.is_conditional:
        names.append("IfMatch")
    if endpoint.method == "GET":
        names.append("IfNoneMatch")
    return [{"$ref": f"#/components/parameters/{name}"} for name in names]


def response_headers(endpoint: Endpoint, status: int, *, is_error: bool) -> list[str]:
    """Return the names of the header fields that a response with this status may have."""
    names = [REQUEST_ID]
    if not is_error:
        names += _success_headers(endpoint, status)
    if status == HTTPStatus.UNAUTHORIZED:
        names.append("WWW-Authenticate")
    if endpoint.access is not AccessRole.PUBLIC and status not in _UNCOUNTED:
        names += ["RateLimit-Policy", "RateLimit"]
    if is_error and status in {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE}:
        names.append("Retry-After")
    return names


def _success_headers(endpoint: Endpoint, status: int) -> list[str]:
    names = []
    is_read = endpoint.method == "GET" and status in {endpoint.status, HTTPStatus.NOT_MODIFIED}
    if is_read or (endpoint.method == "PATCH" and endpoint.is_conditional):
        names.append("ETag")
    if endpoint.may_lag and is_read:
        names.append(REPLICA_LAG)
    if "cursor" in endpoint.query.model_fields and status == endpoint.status:
        names.append("Link")
    if endpoint.idempotent and not endpoint.shows_secret:
        names.append(IDEMPOTENCY_REPLAYED)
    return names
