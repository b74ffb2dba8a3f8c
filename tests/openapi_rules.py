"""Rules for the API's description, beyond what the specification of OpenAPI asks for.

As a program, it prints every place that breaks a rule, and fails if there is one.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from openapi_spec_validator import OpenAPIV31SpecValidator

from tocsin.web.endpoints import ENDPOINTS
from tocsin.web.openapi import build

URL = "https://tocsin.example"
LARGEST = 470_000
"""The longest description, in bytes."""
VERBS = [
    "cancel",
    "create",
    "delete",
    "disable",
    "enable",
    "enrich",
    "export",
    "get",
    "introspect",
    "issue",
    "list",
    "push",
    "regenerate",
    "reload",
    "replay",
    "reroute",
    "resume",
    "retry",
    "revoke",
    "rotate",
    "run",
    "search",
    "send",
    "start",
    "update",
]
METHODS = ("get", "put", "post", "patch", "delete")

Place = tuple[str, ...]


def check(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield every place that breaks a rule, with what would be right."""
    yield from _check_info(document)
    yield from _check_operations(document)
    yield from _check_schemas(document)
    yield from _check_examples(document)
    yield from _check_components(document)
    yield from (f"specification: {fault}" for fault in _specification_faults(document))


def _specification_faults(document: Mapping[str, Any]) -> Iterator[str]:
    for error in OpenAPIV31SpecValidator(document).iter_errors():
        yield f"{'.'.join(map(str, error.absolute_path))}: {error.message[:200]}"


def _check_info(document: Mapping[str, Any]) -> Iterator[str]:
    for member in ("contact", "license", "description", "summary"):
        if not document["info"].get(member):
            yield f"info.{member}: missing"
    size = len(json.dumps(document, separators=(",", ":")))
    if size > LARGEST:
        yield f"the document: {size:,} bytes; {LARGEST:,} at most"


def _operations(document: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for path, item in document["paths"].items():
        for method in METHODS:
            if method in item:
                yield f"{method.upper()} {path}", item[method]


def _check_operations(document: Mapping[str, Any]) -> Iterator[str]:
    schemes = document["components"]["securitySchemes"]
    tags = {tag["name"] for tag in document["tags"]}
    ids = Counter(operation["operationId"] for _, operation in _operations(document))
    for place, operation in _operations(document):
        name = operation["operationId"]
        if ids[name] > 1:
            yield f"{place}: the operation id {name!r} is not unique"
        if not re.fullmatch(rf"({'|'.join(VERBS)})(_[a-z0-9]+)*", name):
            yield f"{place}: the operation id {name!r} does not begin with a known verb"
        if fault := _wrong_verb(place, name):
            yield f"{place}: the operation id {name!r} {fault}"
        if not set(operation["tags"]) <= tags or len(operation["tags"]) != 1:
            yield f"{place}: use one tag of the document"
        yield from (f"{place}: {fault}" for fault in _check_security(operation, schemes))
        for status, response in operation["responses"].items():
            if int(status) >= 400 and int(status) != 503 and "$ref" not in response:
                yield f"{place}: describe the response {status} in components/responses"


def _wrong_verb(place: str, name: str) -> str | None:
    """Return what is wrong with the verb of an operation on a record of the admin API."""
    method, path = place.split(" ")
    is_record = path.endswith("}")
    if not path.startswith("/api/admin/"):
        return None
    expected = {
        "GET": "get_" if is_record else ("list_", "get_"),
        "PATCH": "update_",
        "DELETE": ("delete_", "disable_"),
    }.get(method)
    if expected is None or name.startswith(expected):
        return None
    return f"does not begin with {expected}"


def _check_security(
    operation: Mapping[str, Any], schemes: Mapping[str, Mapping[str, Any]]
) -> Iterator[str]:
    for requirement in operation["security"]:
        for name, scopes in requirement.items():
            if name not in schemes:
                yield f"there is no security scheme {name!r}"
                continue
            flows = schemes[name].get("flows", {}).values()
            known = {scope for flow in flows for scope in flow["scopes"]}
            if unknown := set(scopes) - known:
                yield f"the security scheme {name!r} declares no scope {sorted(unknown)}"
            if name == "apiKey" and operation.get("x-required-scope") not in schemes[name].get(
                "x-scopes", ()
            ):
                yield "name the scope that an API key needs in x-required-scope"


def _check_schemas(document: Mapping[str, Any]) -> Iterator[str]:
    for place, node in _walk(document, ()):
        if "examples" in place or "example" in place or not isinstance(node, Mapping):
            continue
        kinds = node.get("type", ())
        if "array" in ([kinds] if isinstance(kinds, str) else kinds) and "items" not in node:
            yield f"{'.'.join(place)}: an array without items"


def _check_examples(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield the examples that do not fit their schema, of models, media, parameters and headers."""
    for place, node in _walk(document, ()):
        if "examples" in place or "example" in place or not isinstance(node, Mapping):
            continue
        schema = node.get("schema", node)
        if "example" in node and isinstance(schema, Mapping):
            yield from _misfits(document, place, schema, node["example"])
        examples = node.get("examples", ())
        values = examples.values() if isinstance(examples, Mapping) else examples
        for value in values:
            found = _resolve(document, value) if isinstance(examples, Mapping) else value
            shown = found["value"] if isinstance(examples, Mapping) else found
            yield from _misfits(document, place, schema, shown)
    paths = json.dumps(document["paths"])
    for name, schema in document["components"]["schemas"].items():
        is_sent_whole = f'"#/components/schemas/{name}"' in paths and "enum" not in schema
        if is_sent_whole and "examples" not in schema:
            yield f"components.schemas.{name}: no example"


def _misfits(
    document: Mapping[str, Any], place: Place, schema: Mapping[str, Any], value: object
) -> Iterator[str]:
    bundle = {**schema, "components": document["components"]}
    checker = Draft202012Validator.FORMAT_CHECKER
    error: ValidationError
    for error in Draft202012Validator(bundle, format_checker=checker).iter_errors(value):
        yield f"{'.'.join(place)}: an example does not fit: {error.message[:200]}"


def _check_components(document: Mapping[str, Any]) -> Iterator[str]:
    text = json.dumps(document)
    for kind in ("schemas", "responses", "examples", "parameters", "headers"):
        for name in document["components"][kind]:
            if f'"#/components/{kind}/{name}"' not in text:
                yield f"components.{kind}.{name}: nothing refers to it"


def _resolve(document: Mapping[str, Any], node: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a reference leads to; the node itself where it is none."""
    if "$ref" not in node:
        return node
    found: Any = document
    for key in node["$ref"].removeprefix("#/").split("/"):
        found = found[key]
    return dict(found)


def _walk(node: object, place: Place) -> Iterator[tuple[Place, object]]:
    yield place, node
    if isinstance(node, Mapping):
        for name, member in node.items():
            yield from _walk(member, (*place, str(name)))
    elif isinstance(node, list):
        for number, member in enumerate(node):
            yield from _walk(member, (*place, str(number)))


def main(arguments: list[str]) -> int:
    """Check the description, write it to a file where one is named, and return the exit status."""
    document = build(ENDPOINTS, public_url=URL, issuer_url=URL)
    for name in arguments:
        Path(name).write_text(json.dumps(document, indent=1), encoding="utf-8")
    faults = list(check(document))
    summary = f"OpenAPI: {len(ENDPOINTS)} operations, {len(faults)} faults"
    sys.stdout.write("\n".join([*faults, summary, ""]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
