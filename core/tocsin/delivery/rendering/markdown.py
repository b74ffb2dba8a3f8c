"""Filters of templates that write for people: Markdown, and addresses that nobody follows."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from tocsin.observables import defang
from tocsin.reports import escaped, from_json, to_markdown
from tocsin.sandbox import pause, spend

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
