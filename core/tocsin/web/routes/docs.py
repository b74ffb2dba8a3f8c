"""The API's description as an HTML page without scripts."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from http import HTTPStatus
from pathlib import Path
from typing import Any

import orjson
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from tocsin.web.context import Response

_CREDENTIALS = {
    "apiKey": '-H "X-API-Key: $API_KEY"',
    "adminToken": '-H "Authorization: Bearer $ADMIN_TOKEN"',
    "clientSecret": '-u "$CLIENT_ID:$CLIENT_SECRET"',
    "pushToken": '-H "Authorization: Bearer $PUSH_TOKEN"',
    "webhookSecret": '-H "X-Hub-Signature-256: $SIGNATURE"',
}

Schema = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class DocumentedOperation:
    """One operation, or one event."""

    method: str
    path: str
    content: Mapping[str, Any]

    @property
    def anchor(self) -> str:
        """Fragment of the URL of the operation."""
        return str(self.content["operationId"])

    @property
    def access(self) -> str:
        """The required scope or role."""
        match self.content["security"]:
            case []:
                return "public"
            case [{"adminToken": _}]:
                return "admin"
            case [{"clientSecret": _}, *_]:
                return "client"
            case [{"pushToken": _}, *_]:
                return "sender"
            case [{"webhookSecret": _}]:
                return "webhook"
            case [{"apiKey": _}, *_]:
                return str(self.content["x-required-scope"])
        raise LookupError(f"{self.anchor} has an unknown security requirement")

    @property
    def body(self) -> tuple[str, Mapping[str, Any]] | None:
        """The media type and the content of the body; None if there is no body."""
        contents = self.content.get("requestBody", {}).get("content", {})
        return next(iter(contents.items()), None)


class ApiDocsPage:
    """The OpenAPI document, for the template."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.document = document

    @cached_property
    def operations(self) -> list[DocumentedOperation]:
        """Every operation, in the order of the document."""
        return [
            DocumentedOperation(method.upper(), path, content)
            for path, item in self.document["paths"].items()
            for method, content in item.items()
            if method != "servers"
        ]

    def list_operations(self, tag: str) -> list[DocumentedOperation]:
        """Return the operations of a group."""
        return [operation for operation in self.operations if tag in operation.content["tags"]]

    @cached_property
    def events(self) -> list[DocumentedOperation]:
        """Every event that Tocsin posts to receivers."""
        webhooks = self.document["webhooks"].items()
        return [DocumentedOperation("POST", name, item["post"]) for name, item in webhooks]

    def resolve(self, schema: Schema) -> Schema:
        """Return the target of a reference, or the schema itself if it is not a reference."""
        found: Any = self.document
        if "$ref" not in schema:
            return schema
        for key in schema["$ref"].removeprefix("#/").split("/"):
            found = found[key]
        return dict(found)

    def example(self, content: Mapping[str, Any]) -> Any:
        """Return the example of the schema of this content; None if there is no example."""
        return next(iter(self.resolve(content["schema"]).get("examples", ())), None)

    def successes(
        self, operation: DocumentedOperation
    ) -> Iterator[tuple[str, Mapping[str, Any], Mapping[str, Any] | None]]:
        """Yield the status, the response and the content of every response that is not an error."""
        for status, shown in operation.content["responses"].items():
            if not _is_error(status, shown):
                response = self.resolve(shown)
                yield status, response, next(iter(response.get("content", {}).values()), None)

    def errors(self, operation: DocumentedOperation) -> Iterator[tuple[str, str, str, str]]:
        """Yield the status, its phrase, the kind and the detail of every error."""
        for status, shown in operation.content["responses"].items():
            if not _is_error(status, shown):
                continue
            response = self.resolve(shown)
            for content in response["content"].values():
                for example in content["examples"].values():
                    error = self.resolve(example)["value"]
                    kind = error.get("error") or error["type"]
                    detail = error.get("detail") or error["error_description"]
                    yield status, response["description"], kind, detail

    def curl(self, operation: DocumentedOperation) -> str:
        """Return the command that calls the operation."""
        parameters = [self.resolve(parameter) for parameter in operation.content["parameters"]]
        values = {p["name"]: p["example"] for p in parameters if p["in"] == "path"}
        server = self.document["paths"][operation.path].get("servers", self.document["servers"])[0]
        # what curl does by itself need not be said
        usual = "GET" if operation.body is None else "POST"
        method = "" if operation.method == usual else f" -X {operation.method}"
        url = server["url"] + operation.path.format(**values)
        lines = [f"curl -sS{method} '{url}'", *_credentials(operation), *self._sent(operation)]
        return " \\\n  ".join(lines)

    def _sent(self, operation: DocumentedOperation) -> Iterator[str]:
        if operation.body is None:
            return
        media_type, content = operation.body
        example = self.example(content)
        if media_type == "application/json":
            yield f"-H 'Content-Type: {media_type}'"
            yield f"-d '{_compact(example)}'"
            return
        for name, value in example.items():
            if name not in {"client_id", "client_secret"}:
                yield f"-d '{name}={value}'"


def _is_error(status: str, response: Mapping[str, Any]) -> bool:
    """Return whether this is a problem, and no other response such as that of an unready node."""
    return "$ref" in response and int(status) >= HTTPStatus.BAD_REQUEST


def _credentials(operation: DocumentedOperation) -> Iterator[str]:
    for scheme in operation.content["security"][:1]:
        yield from (_CREDENTIALS[name] for name in scheme)


def _compact(value: object) -> str:
    return orjson.dumps(value).decode().replace("'", r"'\''")


_HERE = Path(__file__).parent
_BOUNDS = (
    ("minLength", "maxLength", " characters"),
    ("minItems", "maxItems", " items"),
    ("minimum", "maximum", ""),
)


def make_page(document: Mapping[str, Any]) -> Response:
    """Return the page; it loads no resources and runs no scripts."""
    style = (_HERE / "docs.css").read_text(encoding="utf-8")
    digest = b64encode(sha256(style.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )
    template = _environment().get_template("docs.html.j2")
    html = template.render(page=ApiDocsPage(document), style=Markup(style))  # noqa: S704 - our own file
    return Response(html.encode(), {"Content-Security-Policy": policy})


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "prose": _format_prose,
        "pretty": _format_json,
        "type": _describe_type,
        "limits": _describe_limits,
    }
    return environment


def _format_json(value: object) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()


def _format_prose(text: str) -> Markup:
    """Return the text with code elements for backticks."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704 - escaped


def _describe_type(schema: Schema) -> Markup:
    """Return the type that a schema describes."""
    match schema:
        case {"$ref": str(reference)}:
            name = reference.rpartition("/")[2]
            return Markup('<a href="#schema-{0}">{0}</a>').format(name)
        case {"anyOf": options}:
            return Markup(" or ").join(map(_describe_type, options))
        case {"const": value}:
            return _describe_type({"enum": [value]})
        case {"enum": values}:
            return Markup(", ").join(Markup("<code>{}</code>").format(value) for value in values)
        case {"type": "array", "items": items}:
            return Markup("array of {}").format(_describe_type(items))
    parts = schema.get("type", "anything"), schema.get("format")
    return escape(", ".join(filter(None, parts)))


def _describe_limits(schema: Schema) -> str:
    """Return the bounds and the default of a value, if any."""
    parts = []
    for low, high, unit in _BOUNDS:
        match schema.get(low), schema.get(high):
            case None, None:
                continue
            case None, most:
                parts.append(f"at most {most:,}{unit}")
            case least, None:
                parts.append(f"at least {least:,}{unit}")
            case least, most:
                parts.append(f"{least:,} to {most:,}{unit}")
    if schema.get("default") not in (None, ""):
        parts.append(f"default {schema['default']}")
    return "; ".join(parts)
