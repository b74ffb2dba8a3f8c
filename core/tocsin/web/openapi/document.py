"""The OpenAPI document."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from tocsin.web.context import Endpoint
from tocsin.web.openapi.headers import HEADERS, PARAMETERS
from tocsin.web.openapi.operations import describe
from tocsin.web.openapi.responses import ErrorResponses, describe_not_modified
from tocsin.web.openapi.schemas import component_schemas
from tocsin.web.openapi.security import security_schemes
from tocsin.web.openapi.tags import OAUTH, PLUGIN_ROUTES, TAGS, EndpointTag, find_tag
from tocsin.web.openapi.webhooks import webhooks

_DESCRIPTION = """\
Tocsin syncs incidents from SIEMs and accounts for every one of them. Use this API to read \
incidents, run investigations, and manage credentials, destinations and schedules.

Send an API key in `X-API-Key`, or an API client's access token as `Authorization: Bearer`. \
Each endpoint under `/api/v1` requires one scope. Endpoints under `/api/admin` require an admin \
token instead.

Errors are problem documents (RFC 9457). The OAuth 2.0 endpoints use the errors of RFC 6749 \
instead. Tocsin rejects requests with unknown parameters or members. Times are in \
ISO 8601 format and in UTC. Request bodies can be up to 64 KiB in size, webhooks and buttons up to \
2 MiB, and pushes up to 16 MiB unless the provider has a different limit. Later versions can add \
members to responses: ignore members that you do not know.

An API client obtains an access token with `POST /oauth/token`, uses it until a minute before it \
expires and then obtains the next one.

Each credential has a rate limit, by default 600 requests a minute with bursts of 100. `RateLimit` \
shows the current state. After a response with status 429, wait for `Retry-After` seconds. Tocsin \
also limits addresses from which many authentications fail. Web pages from other origins can call \
the API only if the operator allows their origin (CORS).

Every response has an `X-Request-Id`, which the service also writes to its log."""


def build(endpoints: Sequence[Endpoint], *, public_url: str, issuer_url: str) -> dict[str, Any]:
    """Return the OpenAPI document."""
    errors = ErrorResponses(endpoints)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Tocsin",
            "version": version("tocsin"),
            "summary": "Incidents from every SIEM, each accounted for",
            "description": _DESCRIPTION,
            "contact": {"name": "Operator of this Tocsin service", "url": public_url},
            "license": {"name": "Apache License 2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": public_url}],
        "tags": [_describe_tag(tag) for tag in TAGS if tag is not PLUGIN_ROUTES],
        "paths": _paths(endpoints, errors, public_url, issuer_url),
        "webhooks": webhooks(),
        "components": {
            "schemas": component_schemas(endpoints),
            "securitySchemes": security_schemes(issuer_url),
            "parameters": PARAMETERS,
            "headers": HEADERS,
            "responses": errors.describe() | describe_not_modified(endpoints),
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


_COMPONENTS = ("schemas", "responses", "examples")


def add_operations(document: dict[str, Any], other: dict[str, Any], prefix: str) -> None:
    """Add the operations of another document, with separate names for its components.

    Raises LookupError if one of its references has no target.
    """
    for kind in _COMPONENTS:
        known, own = document["components"][kind], other["components"][kind]
        for name, content in own.items():
            if known.get(name) == content:
                continue
            new = f"{prefix}.{name}"
            known[new] = content
            other = _rename(other, f"#/components/{kind}/{name}", f"#/components/{kind}/{new}")
    for kind in _COMPONENTS:
        for name, content in other["components"][kind].items():
            if f"{prefix}.{name}" in document["components"][kind]:
                document["components"][kind][f"{prefix}.{name}"] = content
    for target in set(re.findall(r'"#/components/(\w+/[\w.-]+)"', json.dumps(other["paths"]))):
        kind, _, name = target.partition("/")
        if name not in document["components"][kind]:
            raise LookupError(f"no component {target}")
    document["paths"] |= other["paths"]
    if (tag := _describe_tag(PLUGIN_ROUTES)) not in document["tags"]:
        document["tags"].append(tag)


def _describe_tag(tag: EndpointTag) -> dict[str, str]:
    return {"name": tag.name, "description": tag.description}


def _rename(value: Any, old: str, new: str) -> Any:
    """Return JSON with references to `old` replaced with `new`."""
    if isinstance(value, dict):
        return {key: _rename(one, old, new) for key, one in value.items()}
    if isinstance(value, list):
        return [_rename(one, old, new) for one in value]
    return new if value == old else value
