"""JSON Schemas of requests, responses and events."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, models_json_schema

from tocsin.events import ENVELOPES
from tocsin.model import Json
from tocsin.web.context import AccessRole, Endpoint
from tocsin.web.openapi.examples import build_example
from tocsin.web.openapi.tags import PLUGIN_ROUTES
from tocsin.web.problems import OAuthErrorDocument, ProblemDocument

_TEMPLATE = "#/components/schemas/{model}"

Model = type[BaseModel]


class OpenApiDocument(BaseModel):
    """An OpenAPI 3.1 document."""

    model_config = ConfigDict(extra="allow")

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "openapi": "3.1.0",
        "info": {"title": "Tocsin", "version": "0.1.0"},
    }

    openapi: str
    info: dict[str, Any]
    paths: dict[str, Any]


class _Schemas(GenerateJsonSchema):
    """Omits titles that repeat the names of fields."""

    def field_title_should_be_set(self, schema: object) -> bool:  # noqa: ARG002 - its signature
        return False


def reference(model: Model) -> dict[str, str]:
    """Return a reference to the schema of a model."""
    return {"$ref": _TEMPLATE.format(model=model.__name__)}


def query_schema(model: Model) -> dict[str, Any]:
    """Return the schema of query parameters."""
    schema = model.model_json_schema(ref_template=_TEMPLATE, schema_generator=_Schemas)
    return _never_null(schema)


def component_schemas(endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    """Return the schemas of all endpoints and events, by name."""
    models = list(dict.fromkeys(_models(endpoints)))
    _, document = models_json_schema(models, ref_template=_TEMPLATE, schema_generator=_Schemas)
    schemas: dict[str, Any] = document["$defs"]
    for endpoint in endpoints:
        schemas.pop(endpoint.query.__name__, None)
    for name in _list_unused(schemas, endpoints):
        del schemas[name]
    for model in dict.fromkeys(_example_models(endpoints)):
        schemas[model.__name__]["examples"] = [build_example(model)]
    forms = {e.body.__name__ for e in endpoints if e.body and e.access is AccessRole.CLIENT}
    bodies = {e.body.__name__ for e in endpoints if e.body} - forms
    shaped = {}
    for name, schema in sorted(schemas.items()):
        if name in bodies:
            shaped[name] = schema
        else:
            shaped[name] = _never_null(schema if name in forms else _open(schema))
    return shaped


def _example_models(endpoints: Sequence[Endpoint]) -> Iterator[Model]:
    """Yield the models of complete bodies, responses and events."""
    yield from ENVELOPES.values()
    for endpoint in endpoints:
        if endpoint.path.startswith(PLUGIN_ROUTES.prefixes):
            continue  # their models need no examples
        yield from filter(None, (endpoint.body, endpoint.response))


def _list_unused(schemas: dict[str, Any], endpoints: Sequence[Endpoint]) -> list[str]:
    """Return the names of the schemas without references."""
    queries = [query_schema(endpoint.query).get("properties", {}) for endpoint in endpoints]
    used = set(re.findall(_REFERENCE, repr([schemas, queries])))
    whole = {model.__name__ for model, _ in _models(endpoints)}
    return [name for name in schemas if name not in used | whole]


_REFERENCE = re.compile(r"#/components/schemas/(\w+)")


def _models(endpoints: Sequence[Endpoint]) -> Iterator[tuple[Model, JsonSchemaMode]]:
    always: list[Model] = [ProblemDocument, OAuthErrorDocument, *ENVELOPES.values()]
    for answered in always:
        yield answered, "serialization"
    for endpoint in endpoints:
        yield endpoint.query, "validation"  # for the vocabularies that its parameters name
        if endpoint.response is not None:
            yield endpoint.response, "serialization"
        if endpoint.body is not None:
            yield endpoint.body, "validation"


def _open(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a response, which can gain members."""
    return {name: value for name, value in schema.items() if name != "additionalProperties"}


def _never_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object that omits members instead of null."""
    if "properties" not in schema:
        return schema
    members = {name: _not_null(field) for name, field in schema["properties"].items()}
    return schema | {"properties": members}


def _not_null(field: dict[str, Any]) -> dict[str, Any]:
    if field.get("default", ...) is not None:
        return field
    rest = {name: value for name, value in field.items() if name not in {"anyOf", "default"}}
    kind: dict[str, Any]
    [kind] = (kind for kind in field["anyOf"] if kind != {"type": "null"})
    return rest | kind
