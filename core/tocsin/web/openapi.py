"""The API's description (OpenAPI 3.1), made from the endpoint table and its models."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from http import HTTPStatus
from importlib.metadata import version
from typing import Any

from pydantic import BaseModel, ConfigDict
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from tocsin.web.calls import Access, Endpoint, Role
from tocsin.web.problems import CONTENT_TYPE, Problem

_REFERENCE = "#/components/schemas/{model}"
_PATH_PARAMETERS = {
    "number": {"schema": {"type": "integer", "minimum": 1}, "description": "Tocsin's own number."}
}
_SECURITY_SCHEMES = {
    "apiKey": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
    "adminToken": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
}
_REQUEST_ID = {
    "X-Request-Id": {
        "description": "The caller's own, if well formed, else a new one.",
        "schema": {"type": "string"},
    }
}


class OpenApi(BaseModel):
    """An OpenAPI 3.1 document."""

    model_config = ConfigDict(extra="allow")

    openapi: str
    info: dict[str, Any]
    paths: dict[str, Any]


def build(endpoints: Sequence[Endpoint], public_url: str) -> dict[str, Any]:
    """Return the OpenAPI document."""
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Tocsin", "version": version("tocsin")},
        "servers": [{"url": public_url}],
        "paths": paths,
        "components": {"schemas": _schemas(endpoints), "securitySchemes": _SECURITY_SCHEMES},
    }


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": endpoint.handler.__name__,
        "summary": endpoint.summary,
        "parameters": [*_path_parameters(endpoint), *_query_parameters(endpoint)],
        "responses": _responses(endpoint),
        "security": _security(endpoint.access),
    }
    if endpoint.body is not None:
        content = _json(endpoint.body)
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _path_parameters(endpoint: Endpoint) -> Iterator[dict[str, Any]]:
    for name in re.findall(r"{(\w+)}", endpoint.path):
        yield {"name": name, "in": "path", "required": True, **_PATH_PARAMETERS[name]}


def _query_parameters(endpoint: Endpoint) -> Iterator[dict[str, Any]]:
    schema = endpoint.query.model_json_schema(ref_template=_REFERENCE)
    for name, field in schema.get("properties", {}).items():
        description = field.pop("description", "")
        required = name in schema.get("required", ())
        yield {
            "name": name,
            "in": "query",
            "required": required,
            "description": description,
            "schema": field,
        }


def _security(access: Access) -> list[dict[str, list[str]]]:
    match access:
        case Role.PUBLIC:
            return []
        case Role.ADMIN:
            return [{"adminToken": []}]
        case scope:
            return [{"apiKey": [scope.value]}]


def _responses(endpoint: Endpoint) -> dict[str, Any]:
    answer, problem = _json(endpoint.answer), _json(Problem, CONTENT_TYPE)
    contents = dict.fromkeys((endpoint.status, *endpoint.other_statuses), answer)
    contents |= dict.fromkeys(sorted(_errors(endpoint)), problem)
    return {str(status): _response(status, content) for status, content in contents.items()}


def _errors(endpoint: Endpoint) -> set[int]:
    """Return every status of a problem document that the endpoint may answer."""
    errors = {422, 500, *endpoint.errors}
    if endpoint.access is not Role.PUBLIC:
        errors |= {400, 401, 403}
    if endpoint.body is not None:
        errors |= {400, 413, 415}
    return errors


def _response(status: int, content: dict[str, Any]) -> dict[str, Any]:
    phrase = HTTPStatus(status).phrase
    return {"description": phrase, "headers": _REQUEST_ID, "content": content}


def _json(model: type[BaseModel], content_type: str = "application/json") -> dict[str, Any]:
    return {content_type: {"schema": {"$ref": _REFERENCE.format(model=model.__name__)}}}


def _schemas(endpoints: Iterable[Endpoint]) -> dict[str, Any]:
    models: list[tuple[type[BaseModel], JsonSchemaMode]] = [(Problem, "serialization")]
    for endpoint in endpoints:
        models += [(endpoint.answer, "serialization"), (endpoint.query, "validation")]
        if endpoint.body is not None:
            models.append((endpoint.body, "validation"))
    _, document = models_json_schema(models, ref_template=_REFERENCE)
    schemas: dict[str, Any] = document["$defs"]
    for endpoint in endpoints:
        schemas.pop(endpoint.query.__name__, None)
    return schemas
