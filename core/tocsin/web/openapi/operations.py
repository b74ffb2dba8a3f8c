"""What one endpoint takes and answers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from http import HTTPStatus
from inspect import getdoc
from typing import Any

from pydantic import BaseModel

from tocsin.web.authentication import FORM_MEDIA_TYPE
from tocsin.web.context import AccessRole, Endpoint
from tocsin.web.openapi.examples import (
    BACKFILL_ID,
    DELIVERY_ID,
    EXAMPLES,
    PROVIDER,
    REPLAY_ID,
    SCHEDULE_ID,
    SESSION_ID,
)
from tocsin.web.openapi.headers import request_headers, response_headers
from tocsin.web.openapi.refusals import Refusal, list_refusals
from tocsin.web.openapi.schemas import query_schema, reference
from tocsin.web.openapi.security import security_requirements
from tocsin.web.openapi.tags import find_tag

JSON = "application/json"

_PATH_PARAMETERS: dict[str, dict[str, Any]] = {
    "delivery_id": {
        "schema": {"type": "string", "pattern": "^dlv_[0-9A-Z]{26}$"},
        "description": "The delivery's identifier.",
        "example": DELIVERY_ID,
    },
    "replay_id": {
        "schema": {"type": "string", "pattern": "^rpl_[0-9A-Z]{26}$"},
        "description": "The replay's identifier.",
        "example": REPLAY_ID,
    },
    "backfill_id": {
        "schema": {"type": "string", "pattern": "^bkf_[0-9A-Z]{26}$"},
        "description": "The backfill's identifier.",
        "example": BACKFILL_ID,
    },
    "schedule_id": {
        "schema": {"type": "string", "pattern": "^sch_[0-9A-Z]{26}$"},
        "description": "The schedule's identifier.",
        "example": SCHEDULE_ID,
    },
    "session_id": {
        "schema": {"type": "string", "pattern": "^ses_[0-9A-Z]{26}$"},
        "description": "The session's identifier.",
        "example": SESSION_ID,
    },
    "step": {
        "schema": {"type": "integer", "minimum": 1, "maximum": 10**9 - 1},
        "description": "The step's number.",
        "example": 7,
    },
    "value": {
        "schema": {"type": "string", "minLength": 1, "maxLength": 2048},
        "description": "The entity's value, percent-encoded: `/` is `%2F`.",
        "example": "203.0.113.7",
    },
    "number": {
        "schema": {"type": "integer", "minimum": 1, "maximum": 10**18 - 1},
        "description": "Tocsin's own number.",
        "example": 4711,
    },
    "name": {
        "schema": {"type": "string", "minLength": 1, "maxLength": 100},
        "description": "The destination's name.",
        "example": "soar",
    },
    "plugin": {
        "schema": {"type": "string", "minLength": 1, "maxLength": 100},
        "description": "The plugin's name.",
        "example": "webhook",
    },
    "provider": {
        "schema": {"type": "string", "minLength": 1, "maxLength": 100},
        "description": "The provider's name in `plugins.toml`.",
        "example": PROVIDER,
    },
    "key_id": {
        "schema": {"type": "string", "pattern": "^[0-9A-Za-z]{16}$"},
        "description": "The key's public identifier.",
        "example": "0a1B2c3D4e5F6g7H",
    },
    "client_id": {
        "schema": {"type": "string", "pattern": "^cl_[0-9A-Za-z]{16}$"},
        "description": "The client's identifier.",
        "example": "cl_0a1B2c3D4e5F6g7H",
    },
}


def describe(endpoint: Endpoint) -> dict[str, Any]:
    """Return the endpoint as an OpenAPI operation."""
    operation = {
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
        "responses": _responses(endpoint),
    }
    return operation | _request_body(endpoint)


def _path_parameters(endpoint: Endpoint) -> Iterator[dict[str, Any]]:
    for name in re.findall(r"{(\w+)}", endpoint.path):
        yield {"name": name, "in": "path", "required": True, **_PATH_PARAMETERS[name]}


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


def _request_body(endpoint: Endpoint) -> dict[str, Any]:
    if endpoint.body is None:
        return {}
    content_type = FORM_MEDIA_TYPE if endpoint.access is AccessRole.CLIENT else JSON
    content = {content_type: _content(endpoint.body)}
    return {"requestBody": {"required": endpoint.body_required, "content": content}}


def _content(model: type[BaseModel]) -> dict[str, Any]:
    return {"schema": reference(model), "example": EXAMPLES[model]}


def _responses(endpoint: Endpoint) -> dict[str, Any]:
    content = _content(endpoint.answer) if endpoint.answer else {"schema": {"type": "string"}}
    responses = {
        status: _response(endpoint, status, {endpoint.media_type: content})
        for status in (endpoint.status, *endpoint.other_statuses)
    }
    if endpoint.method == "GET":
        responses[304] = _response(endpoint, 304, {})
    for refusal in list_refusals(endpoint):
        if refusal.status not in responses:
            responses[refusal.status] = _response(endpoint, refusal.status, {}, refused=True)
        _add_example(responses[refusal.status], refusal, endpoint)
    return {str(status): responses[status] for status in sorted(responses)}


def _response(
    endpoint: Endpoint, status: int, content: dict[str, Any], *, refused: bool = False
) -> dict[str, Any]:
    response = {
        "description": HTTPStatus(status).phrase,
        "headers": response_headers(endpoint, status, refused=refused),
    }
    return response | ({"content": content} if content or refused else {})


def _add_example(response: dict[str, Any], refusal: Refusal, endpoint: Endpoint) -> None:
    content = response["content"].setdefault(
        refusal.content_type, {"schema": reference(refusal.model), "examples": {}}
    )
    content["examples"][refusal.name] = {"value": refusal.example(endpoint)}
