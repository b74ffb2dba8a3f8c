"""ServiceNow field values: correlation ID, journal entry, priority."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tocsin import Json
from tocsin_plugins.ticketing.http_tracker import hash_key
from tocsin_plugins.ticketing.markup import render_comment

_KEY = re.compile(
    r"(?!javascript:)[A-Za-z0-9:/._-]{1,100}", re.IGNORECASE
)  # which ServiceNow would run
_WEIGHTS = ("impact", "urgency")
# Markup that journal fields render as HTML, and mentions
_RENDERED = re.compile(r"\[(?=\s*/?\s*code)|(?<=@)\[", re.IGNORECASE)


def correlation_id(key: str) -> str:
    """Return a key as a correlation ID without query syntax."""
    return key if _KEY.fullmatch(key) else hash_key(key)


def journal_entry(markdown: str) -> str:
    """Return Markdown as a journal entry.

    The event's name comes first, because long entries are cut at the end. The entry does not
    contain HTML or mentions.
    """
    text, _, name = markdown.rpartition("\n\n")
    entry = "\n\n".join(filter(None, [name, render_comment(text)]))
    return _RENDERED.sub("(", entry)


def priority_fields(priority: str | None) -> dict[str, Json]:
    """Return the fields of a priority: impact and urgency, or the priority itself."""
    if not priority:
        return {}
    impact, _, urgency = priority.partition("/")
    return dict(zip(_WEIGHTS, (impact, urgency), strict=True)) if urgency else {"priority": impact}


def drop_priority_fields(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a body without the fields from which a priority is computed."""
    return {name: value for name, value in body.items() if name not in _WEIGHTS}
