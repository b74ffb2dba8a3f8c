"""ServiceNow field values: correlation ID, journal entry, priority."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tocsin import Json
from tocsin_plugins.ticketing.http_tracker import hash_key
from tocsin_plugins.ticketing.markup.comments import render_comment

_KEY = re.compile(r"(?!javascript:)[A-Za-z0-9:/._-]{1,100}", re.IGNORECASE)  # which it would run
_WEIGHTS = ("impact", "urgency")
# What journal fields render as HTML, and what may mention somebody
_RENDERED = re.compile(r"\[(?=\s*/?\s*code)|(?<=@)\[", re.IGNORECASE)


def correlation_id(key: str) -> str:
    """Return a key as a correlation ID, of which no part could mean something in a query."""
    return key if _KEY.fullmatch(key) else hash_key(key)


def journal_entry(markdown: str) -> str:
    """Return Markdown as an entry of a journal.

    What names the event comes first: of an entry that is too long, the end is lost. Nothing in it
    is rendered as HTML, and nobody is mentioned.
    """
    text, _, name = markdown.rpartition("\n\n")
    entry = "\n\n".join(filter(None, [name, render_comment(text)]))
    return _RENDERED.sub("(", entry)


def priority_fields(priority: str | None) -> dict[str, Json]:
    """Return the fields that a priority is: impact/urgency, or the priority itself."""
    if not priority:
        return {}
    impact, _, urgency = priority.partition("/")
    return dict(zip(_WEIGHTS, (impact, urgency), strict=True)) if urgency else {"priority": impact}


def drop_priority_fields(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a body whose priority is not computed from what the template says."""
    return {name: value for name, value in body.items() if name not in _WEIGHTS}
