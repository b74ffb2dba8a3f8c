"""Output formats and filters of templates."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import orjson
from jinja2 import Undefined

from tocsin.observables import defang
from tocsin.reports import escape_markdown as escaped
from tocsin.reports import from_json, to_markdown
from tocsin.sandbox import pause, spend, write_json


@dataclass(frozen=True, slots=True)
class OutputFormat:
    """One template format: `<receiver>/<event>.<suffix>.j2`."""

    suffix: str
    write: Callable[[Any], str]
    """Converts the value of an expression to text."""
    finish: Callable[[bytes], bytes]
    """Converts the rendered text to output; ValueError if it is not of this format."""
    autoescape: bool = False


def _write_json(value: Any) -> str:
    return write_json(value, _reject_value)


def _write_text(value: Any) -> str:
    if isinstance(value, str):
        spend(len(value))
        return value
    return "" if value is None else _write_json(value)


def _reject_value(value: object) -> None:
    if isinstance(value, Undefined):
        str(value)  # raises what a strict undefined value has to say
    raise TypeError(f"{type(value).__name__} is not a JSON value")


def _minify(text: bytes) -> bytes:
    try:
        return orjson.dumps(orjson.loads(text))
    except orjson.JSONDecodeError as error:
        raise ValueError(f"the output is not JSON: {error}") from None


def _pass_through(text: bytes) -> bytes:
    return text


JSON = OutputFormat("json", _write_json, _minify)
TEXT = OutputFormat("txt", _write_text, _pass_through)
HTML = OutputFormat("html", _write_text, _pass_through, autoescape=True)
FORMATS = (JSON, TEXT, HTML)

SHARED = "_shared"
"""The folder of templates that serve every receiver."""
PLAIN_PARTS: Mapping[str, OutputFormat] = MappingProxyType(
    {"body": JSON, "text": TEXT, "html": HTML}
)
"""Parts whose templates do not have the part's name in theirs."""


def list_candidates(receiver: str, event_type: str, part: str) -> dict[str, OutputFormat]:
    """Return the templates that can render a part, best first, with their formats."""
    if part in PLAIN_PARTS:
        form = PLAIN_PARTS[part]
        return {f"{receiver}/{event_type}.{form.suffix}.j2": form}
    places = (f"{receiver}/{event_type}.{part}", f"{receiver}/{part}", f"{SHARED}/{part}")
    return {f"{place}.{form.suffix}.j2": form for place in places for form in FORMATS}


_CHARACTERS = 100_000
_REFERENCES = re.compile(r"(?:#|\bGH-)(?=\d)", re.IGNORECASE)
_OF_DEFANGING = 10  # units per character, since each word is examined


def escape_markdown(value: object) -> str:
    """Escape text for Markdown: no links, mentions or images result."""
    text = str(value)
    spend(len(text))
    escaped_lines = "\n".join(map(escaped, text.splitlines()))
    spend(len(escaped_lines))
    return _neutralize_references(escaped_lines)


def defang_text(value: object) -> str:
    """Defang addresses so that no reader turns them into links: `evil[.]example`."""
    text = str(value)
    spend(_OF_DEFANGING * len(text))
    return defang(text)


def render_report(report: object) -> str:
    """Return a report of the context as Markdown; ValueError if it is not a report."""
    # our own rendering is bounded; the first report compiles our templates
    with pause():
        text = _neutralize_references(to_markdown(from_json(report))[:_CHARACTERS])
    spend(len(text))
    return text


def _neutralize_references(text: str) -> str:
    """Neutralize issue references in Markdown, such as `#1` and `GH-1`.

    Trackers look for them after they parse the Markdown, so escaping does not help.
    """
    return _REFERENCES.sub("\\g<0>\N{WORD JOINER}", text)


FILTERS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {"defang": defang_text, "markdown": escape_markdown, "report_markdown": render_report}
)
