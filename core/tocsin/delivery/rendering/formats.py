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
    """One format of templates: `<receiver>/<event>.<suffix>.j2`."""

    suffix: str
    write: Callable[[Any], str]
    """What the value of an expression is in the text."""
    finish: Callable[[bytes], bytes]
    """What the text is when it goes out; raises ValueError where it is not of this format."""
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
    raise TypeError(f"{type(value).__name__} is not a value that JSON can hold")


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
"""The parts whose templates have no name of a part in theirs."""


def list_candidates(receiver: str, event_type: str, part: str) -> dict[str, OutputFormat]:
    """Return the templates that could render a part, each with its format, the best first."""
    if part in PLAIN_PARTS:
        form = PLAIN_PARTS[part]
        return {f"{receiver}/{event_type}.{form.suffix}.j2": form}
    places = (f"{receiver}/{event_type}.{part}", f"{receiver}/{part}", f"{SHARED}/{part}")
    return {f"{place}.{form.suffix}.j2": form for place in places for form in FORMATS}


_CHARACTERS = 100_000
_REFERENCES = re.compile(r"(?:#|\bGH-)(?=\d)", re.IGNORECASE)
_OF_DEFANGING = 10  # units for each character, since each word is looked at closely


def escape_markdown(value: object) -> str:
    """Return a text so that it stands in Markdown as it is: no link, no mention, no picture."""
    text = str(value)
    spend(len(text))
    escaped_lines = "\n".join(map(escaped, text.splitlines()))
    spend(len(escaped_lines))
    return _neutralize_references(escaped_lines)


def defang_text(value: object) -> str:
    """Return a text in which no reader makes a link of an address: `evil[.]example`."""
    text = str(value)
    spend(_OF_DEFANGING * len(text))
    return defang(text)


def render_report(report: object) -> str:
    """Return a report of the context as Markdown; ValueError where it is none."""
    # what we do ourselves is bounded, and at the first report compiles templates of ours
    with pause():
        text = _neutralize_references(to_markdown(from_json(report))[:_CHARACTERS])
    spend(len(text))
    return text


def _neutralize_references(text: str) -> str:
    """Return Markdown in which nothing refers to an issue of whoever reads it: `#1`, `GH-1`.

    Trackers look for such after they have read the Markdown, so that escaping does not help.
    """
    return _REFERENCES.sub("\\g<0>\N{WORD JOINER}", text)


FILTERS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {"defang": defang_text, "markdown": escape_markdown, "report_markdown": render_report}
)
