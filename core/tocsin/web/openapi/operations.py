"""Operations of the description: what each endpoint takes and returns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from http import HTTPStatus
from inspect import getdoc
from typing import Any

from pydantic import BaseModel

from tocsin.credentials import Scope
from tocsin.web.context import AccessRole, Endpoint
from tocsin.web.oauth_endpoint import FORM_MEDIA_TYPE
from tocsin.web.openapi.headers import request_headers
from tocsin.web.openapi.responses import ErrorResponses, describe_response, refer_not_modified
from tocsin.web.openapi.schemas import query_schema, reference
from tocsin.web.openapi.security import security_requirements
from tocsin.web.openapi.tags import find_tag
from tocsin.web.schemas.examples import (
    BACKFILL_ID,
    CLIENT_ID,
    CONSOLE_SESSION_ID,
    DELIVERY_ID,
    KEY_ID,
    PASSKEY_ID,
    PROVIDER,
    REPLAY_ID,
    SCHEDULE_ID,
    SESSION_ID,
)

JSON = "application/json"

_PATH_PARAMETERS: dict[str, dict[str, Any]] = {
    "delivery_id": {
        "schema": {"type": "string", "pattern": "^dlv_[0-9A-Z]{26}$"},
        "description": "Delivery ID.",
        "example": DELIVERY_ID,
    },
    "replay_id": {
        "schema": {"type": "string", "pattern": "^rpl_[0-9A-Z]{26}$"},
        "description": "Replay ID.",
        "example": REPLAY_ID,
    },
    "backfill_id": {
        "schema": {"type": "string", "pattern": "^bkf_[0-9A-Z]{26}$"},
        "description": "Backfill ID.",
        "example": BACKFILL_ID,
    },
    "schedule_id": {
        "schema": {"type": "string", "pattern": "^sch_[0-9A-Z]{26}$"},
        "description": "Schedule ID.",
        "example": SCHEDULE_ID,
    },
    "session_id": {
        "schema": {"type": "string", "pattern": "^ses_[0-9A-Z]{26}$"},
        "description": "Session ID.",
        "example": SESSION_ID,
    },
    "record_id": {
        "schema": {"type": "integer", "minimum": 1, "maximum": 10**18 - 1},
        "description": "ID of the quarantined record.",
        "example": 17,
    },
    "destination": {
        "schema": {"type": "string", "minLength": 1, "maxLength": 100},
        "description": "Destination name.",
        "example": "soar",
    },
    "step": {
        "schema": {"type": "integer", "minimum": 1, "maximum": 10**9 - 1},
        "description": "Step number.",
        "example": 7,
    },
    "value": {
        "schema": {"type": "string", "minLength": 1, "maxLength": 2048},
        "description": "Value of the entity, percent-encoded: `/` is `%2F`.",
        "example": "203.0.113.7",
    },
    "number": {
        "schema": {"type": "integer", "minimum": 1, "maximum": 10**18 - 1},
        "description": "Incident number.",
        "example": 4711,
    },
    "name": {
        "schema": {"type": "string", "minLength": 1, "maxLength": 100},
        "description": "Destination name.",
        "example": "soar",
    },
    "person": {
        "schema": {"type": "string", "minLength": 1, "maxLength": 100},
        "description": "Name of the person.",
        "example": "ana",
    },
    "passkey_id": {
        "schema": {"type": "string", "pattern": "^pky_[0-9A-Z]{26}$"},
        "description": "Passkey ID.",
        "example": PASSKEY_ID,
    },
    "plugin": {
        "schema": {"type": "string", "minLength": 1, "maxLength": 100},
        "description": "Plugin name.",
        "example": "webhook",
    },
    "provider": {
        "schema": {"type": "string", "minLength": 1, "maxLength": 100},
        "description": "Name of the provider in `plugins.toml`.",
        "example": PROVIDER,
    },
    "key_id": {
        "schema": {"type": "string", "pattern": "^[0-9A-Za-z]{16}$"},
        "description": "Public ID of the key.",
        "example": KEY_ID,
    },
    "console_session_id": {
        "schema": {"type": "string", "pattern": "^cse_[0-9A-Z]{26}$"},
        "description": "Console session ID.",
        "example": CONSOLE_SESSION_ID,
    },
    "client_id": {
        "schema": {"type": "string", "pattern": "^cl_[0-9A-Za-z]{16}$"},
        "description": "Client ID.",
        "example": CLIENT_ID,
    },
}


_RULE_NAME = _PATH_PARAMETERS["name"] | {
    "description": "Name of the rule.",
    "example": "pentest-2026",
}

_OTHER = {"schema": {"type": "string", "minLength": 1}, "example": "example"}
"""Parameters of plugins' routes."""


def describe(endpoint: Endpoint, errors: ErrorResponses) -> dict[str, Any]:
    """Return the endpoint as an OpenAPI operation."""
    operation: dict[str, Any] = {
        "operationId": endpoint.handler.__name__,
        "tags": [find_tag(endpoint).name],
        "summary": endpoint.summary,
        "description": getdoc(endpoint.handler),
        "security": security_requirements(endpoint.access),
        "parameters": [
            *_path_parameters(endpoint),
            *_query_parameters(endpoint),
            *request_headers(endpoint),
        ],
    }
    if isinstance(endpoint.access, Scope):
        operation["x-required-scope"] = endpoint.access.value
    if endpoint.access in {*Scope, AccessRole.ADMIN}:
        operation["x-console-role"] = endpoint.console_role.value
    if endpoint.body is not None:
        operation["requestBody"] = _request_body(endpoint.body, endpoint)
    return operation | {"responses": _responses(endpoint, errors)}


def _path_parameters(endpoint: Endpoint) -> Iterator[dict[str, Any]]:
    for name in re.findall(r"{(\w+)}", endpoint.path):
        shown = _PATH_PARAMETERS.get(name, _OTHER)
        if endpoint.path.startswith("/api/admin/suppressions/"):
            shown = _RULE_NAME
        yield {"name": name, "in": "path", "required": True, **shown}


def _query_parameters(endpoint: Endpoint) -> Iterator[dict[str, Any]]:
    schema = query_schema(endpoint.query)
    for name, field in schema.get("properties", {}).items():
        yield {
            "name": name,
            "in": "query",
            "required": name in schema.get("required", ()),
            "description": field.pop("description"),
            "schema": field,
        }


def _request_body(model: type[BaseModel], endpoint: Endpoint) -> dict[str, Any]:
    media_type = FORM_MEDIA_TYPE if endpoint.is_form else JSON
    content = {media_type: {"schema": reference(model)}}
    return {"required": endpoint.body_required, "content": content}


def _responses(endpoint: Endpoint, errors: ErrorResponses) -> dict[str, Any]:
    schema = reference(endpoint.response) if endpoint.response else {"type": "string"}
    responses: dict[int, Any] = errors.refer(endpoint)
    if endpoint.method == "GET":
        responses[HTTPStatus.NOT_MODIFIED] = refer_not_modified(endpoint)
    for status in (endpoint.status, *endpoint.other_statuses):
        content = {endpoint.media_type: {"schema": schema}}
        responses[status] = describe_response(endpoint, status) | {"content": content}
    return {str(status): responses[status] for status in sorted(responses)}
