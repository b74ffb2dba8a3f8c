"""The OpenAPI document as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from tocsin.web.context import Endpoint
from tocsin.web.openapi.headers import HEADERS, PARAMETERS
from tocsin.web.openapi.operations import describe
from tocsin.web.openapi.responses import ErrorResponses
from tocsin.web.openapi.schemas import component_schemas
from tocsin.web.openapi.security import security_schemes
from tocsin.web.openapi.tags import OAUTH, TAGS, find_tag
from tocsin.web.openapi.webhooks import webhooks

_DESCRIPTION = """\
Tocsin syncs incidents from SIEMs and makes every one of them accountable: this API reads them, \
and administers the credentials by which others do.

Send an API key in `X-API-Key`, or the access token of an API client as `Authorization: Bearer`. \
Each endpoint asks for one scope; those under `/api/admin` take an admin token instead.

Errors are problem documents (RFC 9457), those of the OAuth 2.0 endpoints as RFC 6749 has them. \
Unknown parameters and members are errors. Times are ISO 8601 in UTC. Bodies hold 64 KiB at most, \
and 1 MiB where incidents are pushed. \
Members may be added to any answer: ignore those that you do not know.

An API client obtains its access token by `POST /oauth/token`, keeps it until a minute before it \
expires, and then obtains the next.

Each credential has a limit, by default 600 requests a minute and 100 at once; `RateLimit` tells \
where it stands, and what is refused with 429 may be tried again after `Retry-After` seconds. \
Addresses from which authentication often fails are limited too. Pages of other origins may call \
the API only where the operator allows theirs (CORS).

Every answer has an `X-Request-Id`, by which the service's log has it."""


def build(endpoints: Sequence[Endpoint], *, public_url: str, issuer_url: str) -> dict[str, Any]:
    """Return the OpenAPI document."""
    errors = ErrorResponses(endpoints)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Tocsin",
            "version": version("tocsin"),
            "summary": "Incidents of every SIEM, each accounted for",
            "description": _DESCRIPTION,
            "contact": {"name": "Operator of this Tocsin service", "url": public_url},
            "license": {"name": "Apache License 2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": public_url}],
        "tags": [{"name": tag.name, "description": tag.description} for tag in TAGS],
        "paths": _paths(endpoints, errors, public_url, issuer_url),
        "webhooks": webhooks(),
        "components": {
            "schemas": component_schemas(endpoints),
            "securitySchemes": security_schemes(issuer_url),
            "parameters": PARAMETERS,
            "headers": HEADERS,
            "responses": errors.describe(),
            "examples": errors.describe_examples(),
        },
    }


def _paths(
    endpoints: Sequence[Endpoint], errors: ErrorResponses, public_url: str, issuer_url: str
) -> dict[str, Any]:
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        path = paths.setdefault(endpoint.path, {})
        path[endpoint.method.lower()] = describe(endpoint, errors)
        if find_tag(endpoint) is OAUTH and issuer_url != public_url:
            path["servers"] = [{"url": issuer_url}]
    return paths
