"""The API's description as a page for people: made once, without scripts, from the document."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from tocsin.web.calls import Response
from tocsin.web.routes.docs_page import ApiDocsPage, Schema

_HERE = Path(__file__).parent
_BOUNDS = (
    ("minLength", "maxLength", " characters"),
    ("minItems", "maxItems", " items"),
    ("minimum", "maximum", ""),
)


def make_page(document: Mapping[str, Any]) -> Response:
    """Return the page, which loads nothing and runs nothing."""
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
    """Return text in which what stands between backticks is code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704 - escaped


def _describe_type(schema: Schema) -> Markup:
    """Return what kind of value the schema describes."""
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
    words = schema.get("type", "anything"), schema.get("format")
    return escape(", ".join(filter(None, words)))


def _describe_limits(schema: Schema) -> str:
    """Return the bounds and the default of a value, nothing where it has none."""
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
